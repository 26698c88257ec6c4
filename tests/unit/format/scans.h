// A sink that keeps the results of a scan.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weft/model/records.h"

namespace weft::testing {

class KeptRecords final : public RecordSink {
 public:
  struct One {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool operator==(const One&) const = default;
  };
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  Status record(const Record& record) override {
    records.push_back({std::string(record.name), record.offset, record.length});
    return {};
  }
  Status link(std::string_view name, std::string_view target) override {
    links.emplace_back(name, target);
    return {};
  }
  Status left_out(std::string_view name, std::string_view why) override {
    others.emplace_back(name, why);
    return {};
  }

  std::vector<One> records;
  Pairs links;
  Pairs others;  // skipped members, and why
};

// Feeds the file to a scanner in parts of `part` bytes.
Status scan(const ContainerFormat& format, std::string_view file, std::size_t part, RecordSink& sink);

}  // namespace weft::testing

// A group of files in memory, which counts the reads of all files (header only).
#pragma once

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>

#include "testing.h"
#include "weft/model/format.h"

namespace weft::testing {

class MemoryGroup final : public FormatInput {
 public:
  MemoryGroup(std::string_view name, std::string_view main, const std::map<std::string, std::string>& others)
      : name_(name), main_(main) {
    for (const auto& [path, text] : others) others_.emplace(path, std::make_unique<MemorySource>(text));
  }
  std::string_view name() const override { return name_; }
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override {
    const auto found = others_.find(std::string(path));
    if (found == others_.end()) return Error{Errc::not_found, "no such file"};
    return found->second.get();
  }

  std::uint64_t reads() const {
    return std::accumulate(others_.begin(), others_.end(), main_.reads(),
                           [](std::uint64_t sum, const auto& other) { return sum + other.second->reads(); });
  }
  std::uint64_t bytes_read() const {
    return std::accumulate(others_.begin(), others_.end(), main_.bytes_read(),
                           [](std::uint64_t sum, const auto& other) { return sum + other.second->bytes_read(); });
  }

 private:
  const std::string name_;
  MemorySource main_;
  std::map<std::string, std::unique_ptr<MemorySource>> others_;
};

}  // namespace weft::testing

// Patterns over versions: what `weft find` takes (weft-find.7 is the grammar). A query is text of a user: parsing is
// bounded, and its errors name the column.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/arch.h"
#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

// What a query is asked about.
struct FindSubject {
  std::string model;
  std::uint64_t version = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;  // of its files
  std::string message;
  std::vector<std::string> tags;                             // with "latest" where it is
  std::vector<std::string> parents;                          // "model@number"
  std::vector<std::pair<std::string, std::string>> metrics;  // as they were given
  const Manifest* manifest = nullptr;                        // may be null where Query::needs_manifest() is false
  const ArchGraph* graph = nullptr;                          // of the manifest
};

class Query {
 public:
  // Errc::invalid: "column N: expected …, got …"; columns are bytes, from 1.
  static Result<Query> parse(std::string_view text);
  Query(Query&&) noexcept;
  Query& operator=(Query&&) noexcept;
  ~Query();

  bool needs_manifest() const;
  bool matches(const FindSubject& subject) const;

  struct Node;

 private:
  explicit Query(std::unique_ptr<Node> root);
  std::unique_ptr<Node> root_;
};

// '*' any run, '?' any one byte, '[a-z]' and '[!a-z]' one of a set, '\' takes the next byte as it is. Whole text.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace weft

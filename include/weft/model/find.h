// Patterns over versions (model/find/parse.cc), as `weft find` takes them (weft-find.7 has the grammar). A query is
// text from a user: parsing is bounded, and errors name the column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/model/arch.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The version that a query is matched against.
struct FindSubject {
  const VersionRow& version;
  std::vector<std::string> tags;       // includes "latest" if it is the newest version
  const Manifest* manifest = nullptr;  // may be null unless Query::needs_manifest()
  const ArchGraph* graph = nullptr;    // of the manifest
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

}  // namespace weft

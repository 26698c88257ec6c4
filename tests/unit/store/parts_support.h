// The parts of a store in a temporary directory, without the store that joins its rooms.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "index_support.h"
#include "store/parts/parts.h"
#include "store_paths.h"

namespace weft::testing {

struct TestParts {
  explicit TestParts(std::optional<ClusterIdentity> cluster = {}, CommitHooks hooks = {})
      : parts(must(StoreParts::open(safe(made.path), write_options(), std::move(hooks), std::move(cluster)))) {}
  VersionRow version(std::string_view model, std::uint64_t number) const {
    Txn txn = must(parts->index.read());
    return must(find_version(txn, must(find_model(txn, model))->id, number)).value();
  }
  bool has_note(std::string_view note, std::uint64_t id) const {
    Txn txn = must(parts->index.read());
    return must(weft::has_note(txn, note, id));
  }
  bool finds(unsigned content) const { return must(must(parts->blobs.read())->find(content_id(content))).has_value(); }

  TestStore made;
  std::unique_ptr<StoreParts> parts;
};

}  // namespace weft::testing

#include "origin/collect_order.h"

#include <chrono>
#include <utility>

#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kCatchUpMax = std::chrono::seconds(10);

}  // namespace

// A version that is published while the rows are read came after the announcement, and is not needed here. An undelete
// from the origin came before the announcement, or fails.
Result<std::vector<VersionRow>> RegistryOrder::versions() {
  WEFT_CHECK(registry_.catch_up(Registry::Clock::now() + kCatchUpMax));
  std::vector<VersionRow> rows;
  WEFT_CHECK(each_row(store_, list_models(), [&](const ModelRow& model) {
    return each_row(store_, list_versions(model.id), [&](VersionRow row) -> Status {
      row.message.clear();
      row.metrics.clear();
      row.parents.clear();
      row.source = {};
      rows.push_back(std::move(row));
      return {};
    });
  }));
  return rows;
}

Result<std::vector<std::byte>> RegistryOrder::manifest(const VersionRow& row) {
  WEFT_TRY(const auto reader, row.removed ? store_.open_manifest(row.manifest) : manifest_of(store_, resolver_, row));
  return std::vector<std::byte>(reader->bytes().begin(), reader->bytes().end());
}

// A version that cannot be found counts as live.
Result<bool> RegistryOrder::is_live(const VersionRow& row) {
  WEFT_CHECK(registry_.catch_up(Registry::Clock::now() + kCatchUpMax));
  WEFT_TRY(const auto snapshot, store_.snapshot());
  const auto now = snapshot->version(row.model, row.number);
  return !now.ok() || now->uid != row.uid || !now->removed;
}

}  // namespace weft

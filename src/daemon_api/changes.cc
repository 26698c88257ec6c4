#include "daemon_api/changes.h"

#include <algorithm>
#include <utility>

#include "weft/manifest.h"
#include "weft/node.h"

namespace weft {
namespace {

void add(std::vector<VersionRow>& rows, VersionRow row) {
  const auto same = [&](const VersionRow& other) { return other.id == row.id; };
  if (std::none_of(rows.begin(), rows.end(), same)) rows.push_back(std::move(row));
}

Result<std::vector<VersionRow>> versions_to_remove(Store& store, const RemoveRequest& request) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  std::vector<VersionRow> rows;
  for (const std::string& spec : request.specs) {
    WEFT_TRY(VersionRow version, resolve_version(*snapshot, spec));
    if (!request.all) {
      add(rows, std::move(version));
      continue;
    }
    WEFT_TRY(auto versions, snapshot->versions(version.model));
    for (VersionRow& row : versions)
      if (!row.removed) add(rows, std::move(row));
  }
  return rows;
}

Status check_model(Store& store, std::string_view model) {
  WEFT_CHECK(check_model_name(model));
  WEFT_TRY(const auto snapshot, store.snapshot());
  const auto row = snapshot->model(model);
  if (row.ok()) return {};
  WEFT_CHECK(resolve_version(*snapshot, model));  // its error says which models there are
  return row.error();
}

}  // namespace

Result<VersionRow> version_of(Store& store, std::string_view spec) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  return resolve_version(*snapshot, spec);
}

Result<VersionName> change_tag(Store& store, const TagRequest& request, const SetTag& set) {
  WEFT_CHECK(check_tag_name(request.tag));
  if (request.gone) {
    WEFT_CHECK(check_model(store, request.spec));
    WEFT_CHECK(set(request.spec, request.tag, std::nullopt));
    return VersionName{request.spec, 0};
  }
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  WEFT_CHECK(set(row.model_name, request.tag, row.number));
  return VersionName{row.model_name, row.number};
}

Status remove_versions(Store& store, const RemoveRequest& request, const RemoveVersion& remove) {
  WEFT_TRY(const auto rows, versions_to_remove(store, request));
  for (const VersionRow& row : rows) WEFT_CHECK(remove({row.model_name, row.number}));
  return {};
}

Status change_pin(Store& store, const PinRequest& request) {
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  return store.pin(row.model_name, row.number, request.pinned);
}

Result<GcOutcome> collect_garbage(Store& store, const GcOptions& options, Progress& progress) {
  GcOutcome outcome;
  WEFT_TRY(outcome.report, store.gc(options, progress));
  WEFT_TRY(outcome.swept, sweep_assembled(store, options.dry_run));
  return outcome;
}

}  // namespace weft

#include "daemon_api/changes.h"

#include <algorithm>
#include <unordered_set>

#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Returns the versions of the specs, each once, in the order of the specs.
Result<std::vector<VersionName>> versions_to_remove(Store& store, const RemoveRequest& request) {
  std::vector<VersionName> names;
  std::unordered_set<VersionId> known;
  const auto add = [&](const VersionRow& row) -> Status {
    if (!row.removed && known.insert(row.id).second) names.push_back({row.model_name, row.number});
    return {};
  };
  for (const std::string& spec : request.specs) {
    WEFT_TRY(const VersionRow version, version_of(store, spec));
    WEFT_CHECK(request.all ? each_row(store, list_versions(version.model), add) : add(version));
  }
  return names;
}

}  // namespace

Result<VersionName> change_tag(Store& store, const TagRequest& request, const SetTag& set) {
  WEFT_CHECK(check_tag_name(request.tag));
  if (request.gone) {
    WEFT_CHECK(model_of(store, request.spec));
    WEFT_CHECK(set(request.spec, request.tag, std::nullopt));
    return VersionName{request.spec, 0};
  }
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  WEFT_CHECK(set(row.model_name, request.tag, row.number));
  return VersionName{row.model_name, row.number};
}

Status remove_versions(Store& store, const RemoveRequest& request, const RemoveSome& remove,
                       const std::function<Status(const VersionName&)>& removed) {
  WEFT_TRY(const auto names, versions_to_remove(store, request));
  for (std::span<const VersionName> rest(names); !rest.empty();) {
    WEFT_TRY(const std::size_t count, remove(rest));
    for (const VersionName& name : rest.first(count)) WEFT_CHECK(removed(name));
    rest = rest.subspan(count);
  }
  return {};
}

Status change_pin(Store& store, const PinRequest& request) {
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  return store.pin(row.model_name, row.number, request.pinned);
}

Result<std::vector<VersionName>> versions_to_displace(Store& store, ModelId model, std::uint64_t keep) {
  std::vector<VersionName> live;
  std::unordered_set<std::uint64_t> tagged;
  WEFT_CHECK(each_row(store, list_versions(model), [&](const VersionRow& row) -> Status {
    if (!row.removed) live.push_back({row.model_name, row.number});
    return {};
  }));
  WEFT_CHECK(each_row(store, list_tags(model), [&](const TagRow& row) -> Status {
    tagged.insert(row.number);
    return {};
  }));
  live.resize(live.size() - std::min<std::size_t>(live.size(), keep));
  std::erase_if(live, [&](const VersionName& version) { return tagged.contains(version.number); });
  return live;
}

Result<std::size_t> displace_versions(Store& store, ModelId model, std::uint64_t keep, const RemoveSome& remove) {
  if (keep == 0) return std::size_t{0};
  WEFT_TRY(const auto names, versions_to_displace(store, model, keep));
  for (std::span<const VersionName> rest(names); !rest.empty();) {
    WEFT_TRY(const std::size_t count, remove(rest));
    rest = rest.subspan(count);
  }
  return names.size();
}

Result<GcOutcome> collect_garbage(Store& store, const GcOptions& options, std::chrono::seconds drafts_kept,
                                  Progress& progress) {
  GcOutcome outcome;
  WEFT_TRY(outcome.report, store.gc(options, progress));
  WEFT_TRY(outcome.swept, sweep_assembled(store, options.dry_run));
  const auto look = options.dry_run ? old_drafts : remove_old_drafts;
  WEFT_TRY(outcome.drafts, look(store.path(), drafts_kept));
  return outcome;
}

}  // namespace weft

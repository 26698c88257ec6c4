#include "daemon_api/changes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include <fmt/core.h>

#include "base/text.h"
#include "drafts/pull_area.h"
#include "weft/model/manifest.h"
#include "weft/names.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Chooses the version with the best value of a metric. Values that are no numbers do not count.
class BestByMetric {
 public:
  explicit BestByMetric(std::string_view rule)
      : largest_(rule.starts_with('-')), metric_(largest_ ? rule.substr(1) : rule) {}

  void see(const VersionRow& row) {
    for (const auto& [key, text] : row.metrics) {
      const auto value = key == metric_ ? parse_real(text) : std::nullopt;
      if (!value) continue;
      if (number_ != 0 && (largest_ ? *value <= value_ : *value >= value_)) continue;
      number_ = row.number;
      value_ = *value;
    }
  }
  std::uint64_t number() const { return number_; }  // 0: no version has the metric
  std::string_view metric() const { return metric_; }

 private:
  const bool largest_;
  const std::string_view metric_;
  std::uint64_t number_ = 0;
  double value_ = 0;
};

Status check_untagged(Store& store, const VersionRow& version) {
  Renewed renewed(store);
  WEFT_TRY(const std::vector<std::string> tags, tags_of(renewed, version));
  return tags.empty() ? Status{} : Status{has_tags(version.model_name, version.number, tags)};
}

// Returns the versions of the specs, each once, in the order of the specs.
Result<std::vector<VersionName>> versions_to_remove(Store& store, const RemoveRequest& request) {
  std::vector<VersionName> names;
  std::unordered_set<VersionId> known;
  std::unordered_set<ModelId> thinned;
  const auto add = [&](const VersionRow& row) -> Status {
    if (row.removed || !known.insert(row.id).second) return {};
    names.push_back({row.model_name, row.number});
    return request.force ? Status{} : check_untagged(store, row);
  };
  for (const std::string& spec : request.specs) {
    WEFT_TRY(const VersionRow version, version_of(store, spec));
    if (request.keep.newest == 0) {
      WEFT_CHECK(request.all ? each_row(store, list_versions(version.model), add) : add(version));
      continue;
    }
    if (!thinned.insert(version.model).second) continue;
    WEFT_TRY(auto some, versions_to_displace(store, version.model, request.keep));
    names.insert(names.end(), some.begin(), some.end());
  }
  return names;
}

// Removes the versions in batches. `skips_tagged`: leaves out versions that get a tag meanwhile.
Status remove_all(std::span<const VersionName> rest, Tagged tagged, bool skips_tagged, const RemoveSome& remove,
                  const OnRemoved& removed) {
  while (!rest.empty()) {
    const auto count = remove(rest, tagged);
    const bool skipped = !count.ok() && count.error().code == Errc::exists && skips_tagged;
    if (!count.ok() && !skipped) return count.error();
    const std::size_t done = skipped ? 0 : *count;
    for (const VersionName& name : rest.first(done)) WEFT_CHECK(removed(name));
    rest = rest.subspan(skipped ? 1 : done);
  }
  return {};
}

}  // namespace

Result<VersionName> change_tag(Store& store, const TagRequest& request, const SetTag& set, const ProtectTag& protect) {
  WEFT_CHECK(check_tag_name(request.tag));
  if (int{request.gone} + int{request.protect} + int{request.unprotect} > 1)
    return Error{Errc::invalid, "expected one change of a tag"};
  if (request.protect || request.unprotect) {
    WEFT_TRY(const VersionRow row, version_of(store, fmt::format("{}@{}", request.spec, request.tag)));
    WEFT_CHECK(protect(row.model_name, request.tag, request.protect));
    return VersionName{row.model_name, row.number};
  }
  if (request.gone) {
    WEFT_CHECK(model_of(store, request.spec));
    WEFT_CHECK(set(request.spec, request.tag, std::nullopt));
    return VersionName{request.spec, 0};
  }
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  WEFT_CHECK(set(row.model_name, request.tag, row.number));
  return VersionName{row.model_name, row.number};
}

Result<VersionName> change_description(Store& store, const NoteRequest& request, const Describe& describe) {
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  WEFT_CHECK(describe(row.model_name, row.number, request.change));
  return VersionName{row.model_name, row.number};
}

Status change_name(Store& store, const RenameRequest& request, const RenameModel& rename) {
  WEFT_CHECK(model_of(store, request.model));
  return rename(request.model, request.to);
}

Status remove_versions(Store& store, const RemoveRequest& request, const RemoveSome& remove, const OnRemoved& removed) {
  WEFT_TRY(const auto names, versions_to_remove(store, request));
  if (request.dry_run) {
    for (const VersionName& name : names) WEFT_CHECK(removed(name));
    return {};
  }
  return remove_all(names, request.force ? Tagged::removed : Tagged::refused, request.keep.newest != 0, remove,
                    removed);
}

Status undelete_versions(const UndeleteRequest& request, const Undelete& undelete, const OnUndeleted& undeleted) {
  std::set<VersionName> known;
  for (const std::string& text : request.specs) {
    WEFT_TRY(VersionSpec spec, parse_version_spec(text));
    const auto number = parse_u64(spec.version);
    if (!number) return Error{Errc::invalid, fmt::format("expected MODEL@NUMBER, got {}", printable(text))};
    if (!known.insert({spec.model, *number}).second) continue;
    WEFT_TRY(const UndeletedVersion version, undelete(spec.model, *number));
    WEFT_CHECK(undeleted(version));
  }
  return {};
}

Status change_pin(Store& store, const PinRequest& request) {
  WEFT_TRY(const VersionRow row, version_of(store, request.spec));
  return store.pin(row.model_name, row.number, request.pinned);
}

Result<std::vector<VersionName>> versions_to_displace(Store& store, ModelId model, const KeepRule& keep) {
  std::vector<VersionName> live;
  std::unordered_set<std::uint64_t> kept;
  BestByMetric best(keep.best);
  WEFT_CHECK(each_row(store, list_versions(model), [&](const VersionRow& row) -> Status {
    if (row.removed) return {};
    live.push_back({row.model_name, row.number});
    best.see(row);
    return {};
  }));
  WEFT_CHECK(each_row(store, list_tags(model), [&](const TagRow& row) -> Status {
    kept.insert(row.number);
    return {};
  }));
  if (!keep.best.empty() && best.number() == 0 && !live.empty())
    return Error{Errc::not_found, fmt::format("{}: expected a version with a number as its metric {}, got none",
                                              live.front().model, printable(best.metric()))};
  kept.insert(best.number());
  live.resize(live.size() - std::min<std::size_t>(live.size(), keep.newest));
  std::erase_if(live, [&](const VersionName& version) { return kept.contains(version.number); });
  return live;
}

Status displace_versions(Store& store, ModelId model, const KeepRule& keep, const RemoveSome& remove,
                         const OnRemoved& removed) {
  if (keep.newest == 0) return {};
  WEFT_TRY(const auto names, versions_to_displace(store, model, keep));
  return remove_all(names, Tagged::refused, true, remove, removed);
}

Status collect_unversioned(Store& store, bool dry_run, std::chrono::seconds drafts_kept, GcOutcome& outcome) {
  WEFT_TRY(outcome.swept, sweep_assembled(store, dry_run));
  const auto collect_drafts = dry_run ? old_drafts : remove_old_drafts;
  WEFT_TRY(outcome.drafts, collect_drafts(store.path(), drafts_kept));
  if (!dry_run) WEFT_CHECK(remove_old_pulls(store.directory() / kPullsFolder, drafts_kept));
  return {};
}

Result<GcOutcome> collect_garbage(Store& store, const GcOptions& options, std::chrono::seconds drafts_kept,
                                  Progress& progress) {
  GcOutcome outcome;
  WEFT_TRY(outcome.report, store.gc(options, progress));
  WEFT_CHECK(collect_unversioned(store, options.dry_run, drafts_kept, outcome));
  return outcome;
}

}  // namespace weft

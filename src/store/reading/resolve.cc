#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "weft/names.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr std::size_t kNamesShown = 8;

// Returns "a, b, c and 12 more". `all`: no other names exist.
std::string some_of(const std::vector<std::string>& names, bool all) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (!all) return text + " and more";
  if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
  return text;
}

// Returns the runs of live numbers, as "1 to 4" or "7".
std::vector<std::string> live_runs(const std::vector<VersionRow>& versions) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const VersionRow& row : versions) {
    if (row.removed) continue;
    if (!runs.empty() && runs.back().second + 1 == row.number)
      runs.back().second = row.number;
    else
      runs.emplace_back(row.number, row.number);
  }
  std::vector<std::string> names;
  names.reserve(runs.size());
  for (auto [first, last] : runs)
    names.push_back(first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last));
  return names;
}

// The messages of these errors list names from the first page only: a large store is not walked for a message.
Error no_model(Snapshot& snapshot, const std::string& name) {
  const auto renamed = snapshot.renamed(name);
  if (!renamed.ok()) return renamed.error();
  if (*renamed) return snapshot.model(name).error();
  const auto models = snapshot.models();
  if (!models.ok()) return models.error();
  std::vector<std::string> names;
  for (const ModelRow& model : models->rows)
    if (model.latest != 0) names.push_back(model.name);
  const bool all = models->next.empty();
  if (names.empty() && !all) return Error{Errc::not_found, fmt::format("no model {}", name)};
  if (names.empty()) return Error{Errc::not_found, fmt::format("no model {}: the store is empty", name)};
  return Error{Errc::not_found, fmt::format("no model {}; there are {}", name, some_of(names, all))};
}

Error no_version(Snapshot& snapshot, const ModelRow& model, const std::string& wanted) {
  const auto number = parse_u64(wanted);
  if (number && *number < model.first_number) {
    const auto before = snapshot.renamed(model.name);
    if (before.ok() && *before && snapshot.version((*before)->id, *number).ok())
      return Error{Errc::not_found,
                   fmt::format("{}@{} was renamed to {}", model.name, *number, spec_of((*before)->name, *number))};
  }
  if (model.latest == 0) return Error{Errc::not_found, fmt::format("all versions of {} were removed", model.name)};
  const auto versions = snapshot.versions(model.id);
  if (!versions.ok()) return versions.error();
  const auto tags = snapshot.tags(model.id);
  if (!tags.ok()) return tags.error();
  std::vector<std::string> names = live_runs(versions->rows);
  for (const TagRow& tag : tags->rows) names.push_back(tag.name);
  const bool was = number && wanted == fmt::format("{}", *number) && snapshot.version(model.id, *number).ok();
  std::string text = fmt::format("{}@{} {}", model.name, wanted, was ? "was removed" : "is not there");
  const bool all = versions->next.empty() && tags->next.empty();
  if (!names.empty()) text += fmt::format("; there are {}", some_of(names, all));
  return Error{Errc::not_found, std::move(text)};
}

Result<std::optional<std::uint64_t>> number_of(Snapshot& snapshot, const ModelRow& model, const std::string& version) {
  if (version.empty() || version == "latest") {
    if (model.latest == 0) return std::optional<std::uint64_t>();
    return std::optional(model.latest);
  }
  if (all_digits(version)) return parse_u64(version);
  auto tag = snapshot.tag(model.id, version);
  if (tag.ok()) return std::optional(tag->number);
  if (tag.error().code == Errc::not_found) return std::optional<std::uint64_t>();
  return std::move(tag).error();
}

}  // namespace

Result<VersionRow> resolve_or_tombstone(Snapshot& snapshot, std::string_view text) {
  auto live = resolve_version(snapshot, text);
  if (live.ok() || live.error().code != Errc::not_found) return live;
  WEFT_TRY(const VersionSpec spec, parse_version_spec(text));
  const auto number = parse_u64(spec.version);
  auto model = snapshot.model(spec.model);
  if (!number || !model.ok()) return live;
  auto row = snapshot.version(model->id, *number);
  return row.ok() ? std::move(row) : std::move(live);
}

Result<VersionRow> resolve_version(Snapshot& snapshot, std::string_view text) {
  WEFT_TRY(VersionSpec spec, parse_version_spec(text));
  WEFT_TRY(auto model, if_there(snapshot.model(spec.model)));
  if (!model) return no_model(snapshot, spec.model);
  WEFT_TRY(auto number, number_of(snapshot, *model, spec.version));
  std::string wanted = spec.version.empty() ? "latest" : spec.version;
  if (!number) return no_version(snapshot, *model, wanted);
  auto row = snapshot.version(model->id, *number);
  if (!row.ok() && row.error().code != Errc::not_found) return row;
  if (!row.ok() || row->removed) return no_version(snapshot, *model, wanted);
  return row;
}

Result<VersionRow> numbered_version(Snapshot& snapshot, ModelId model, std::string_view number) {
  const Error none{Errc::not_found, fmt::format("no version {}", printable(number))};
  const auto parsed = parse_u64(number);
  if (!parsed || number.front() == '0') return none;
  WEFT_TRY(VersionRow version, snapshot.version(model, *parsed));
  if (version.removed) return none;
  return version;
}

Result<ModelRevision> resolve_revision(Snapshot& snapshot, const ModelRow& model, std::string_view revision) {
  using Kind = ModelRevision::Kind;
  if (all_digits(revision)) {
    auto version = numbered_version(snapshot, model.id, revision);
    if (version.ok()) return ModelRevision{Kind::number, *version, version->time_ns, 0};
    if (version.error().code != Errc::not_found) return std::move(version).error();
  }
  const bool is_main = revision == kMainRevision;
  WEFT_TRY(const auto tag, if_there(snapshot.tag(model.id, revision)));
  if (tag) {
    WEFT_TRY(VersionRow version, snapshot.version(model.id, tag->number));
    return ModelRevision{is_main ? Kind::main : Kind::tag, std::move(version), tag->time_ns, tag->ino};
  }
  if (is_main) {
    WEFT_TRY(VersionRow version, snapshot.version(model.id, model.latest));
    return ModelRevision{Kind::main, version, version.time_ns, 0};
  }
  WEFT_TRY(const auto id, snapshot.with_revision(model.id, revision));
  if (!id) return Error{Errc::not_found, fmt::format("{} has no revision {}", model.name, printable(revision))};
  WEFT_TRY(VersionRow version, snapshot.version(*id));
  return ModelRevision{Kind::commit, version, version.time_ns, 0};
}

}  // namespace weft

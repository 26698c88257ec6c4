#include "node/origin_survey.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "base/sys.h"
#include "weft/names.h"
#include "weft/node.h"

namespace weft {
namespace {

Status check_agrees(const VersionRow& row, const VersionContent& content) {
  if (content.logical_bytes == row.logical_bytes && content.views.size() == row.tensors) return {};
  return Error{Errc::corrupt, "its record is not as its manifest"};
}

}  // namespace

Status OriginSurvey::check_cancelled() const {
  if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
  return {};
}

bool OriginSurvey::refuses() {
  report_.refused = !report_.problems.empty() && !accept_loss_;
  return report_.refused;
}

// A tombstone says the most that is still true of a version whose bytes are gone.
void OriginSurvey::lose(VersionRow& row, std::string_view why) {
  tell(fmt::format("{}: {}", spec_of(row.model_name, row.number), why));
  row.removed = true;
  row.removed_ns = now_ns();
}

Status OriginSurvey::look_at(const VersionRow& row) {
  WEFT_TRY(const auto bytes, origin_.manifest(row.manifest));
  WEFT_TRY(const VersionContent content, content_decoder()(bytes));
  WEFT_CHECK(check_agrees(row, content));
  if (!needs_.contains(row.manifest)) needs_.emplace(row.manifest, needs_of(row.manifest, content));
  return {};
}

OriginSurvey::Needs OriginSurvey::needs_of(const Digest& manifest, const VersionContent& content) {
  Needs needs{{}, content.tree_nodes, content.tree_layout};
  const auto said = origin_.places(manifest);
  std::vector<ContentId> unsaid;
  for (const auto& file : content.files)
    for (const ContentId& id : file.extents) {
      const auto place = said.ok() ? said->find(id) : std::nullopt;
      if (!place) unsaid.push_back(id);
      needs.blobs.push_back(blobs_.want(id, place));
    }
  if (!unsaid.empty())
    blobs_.fault(said.ok() ? fmt::format("places of manifest {}: {} of its blobs are not among them", to_hex(manifest),
                                         unsaid.size())
                           : said.error().message,
                 std::move(unsaid));
  std::ranges::sort(needs.blobs);
  needs.blobs.erase(std::unique(needs.blobs.begin(), needs.blobs.end()), needs.blobs.end());
  return needs;
}

Status OriginSurvey::look() {
  WEFT_TRY(names_, read_names(origin_, progress_));
  report_.problems = std::move(names_.problems);
  add_what_is_here();
  WEFT_CHECK(look_at_versions());
  WEFT_CHECK(blobs_.look(progress_));
  return lose_incomplete();
}

// A removal that either has heard of is one; a tag is where the later of both has it.
void OriginSurvey::add_what_is_here() {
  leave_others_out();
  for (const auto& [name, known] : here_.versions) {
    const auto [at, added] = names_.versions.try_emplace(name, known.version);
    if (!added && !at->second.removed) at->second = known.version;
  }
  for (const MirroredTag& here : here_.tags) {
    const auto same = [&](const MirroredTag& tag) { return tag.model == here.model && tag.name == here.name; };
    const auto at = std::ranges::find_if(names_.tags, same);
    if (at == names_.tags.end())
      names_.tags.push_back(here);
    else if (at->time_ns < here.time_ns)
      *at = here;
  }
}

// Another cluster wrote of these models: what it said of them is not this one's.
void OriginSurvey::leave_others_out() {
  std::set<std::string> models;
  for (const auto& [name, known] : here_.versions) {
    const auto at = names_.versions.find(name);
    if (at == names_.versions.end() || at->second.manifest == known.version.manifest) continue;
    others_.push_back(fmt::format("{}: the origin has another version of this number than this node",
                                  spec_of(name.first, name.second)));
    models.insert(name.first);
  }
  std::erase_if(names_.versions, [&](const auto& version) { return models.contains(version.first.first); });
  std::erase_if(names_.tags, [&](const MirroredTag& tag) { return models.contains(tag.model); });
}

const RestoreReport& OriginSurvey::finish() {
  report_.problems.insert(report_.problems.end(), others_.begin(), others_.end());
  report_.mended = std::move(names_.mended);
  for (std::string& mended : blobs_.mended()) report_.mended.push_back(std::move(mended));
  return report_;
}

Status OriginSurvey::look_at_versions() {
  progress_.phase("reading manifests");
  for (auto& [name, row] : names_.versions) {
    WEFT_CHECK(check_cancelled());
    if (row.removed || here_.live(name, row.manifest) != nullptr) continue;
    const Status looked = look_at(row);
    if (!looked.ok()) lose(row, looked.error().message);
  }
  return {};
}

Status OriginSurvey::lose_incomplete() {
  const auto losses = blobs_.take_losses();
  if (losses.empty()) return {};
  for (const std::string& loss : losses) tell(loss);
  for (auto& [name, row] : names_.versions) {
    WEFT_CHECK(check_cancelled());
    if (row.removed || here_.live(name, row.manifest) != nullptr) continue;
    const auto& blobs = needs_.at(row.manifest).blobs;
    const auto missing = std::ranges::count_if(blobs, [](const auto* blob) { return blob->second.lost; });
    if (missing != 0) lose(row, fmt::format("{} of its extents are damaged or missing", missing));
  }
  return {};
}

std::vector<MirrorChange> OriginSurvey::changes() {
  std::vector<MirrorChange> changes;
  std::set<PackId> brought;
  std::set<std::string_view> models;
  for (const VersionRow* row : in_order(names_.versions)) {
    models.insert(row->model_name);
    MirroredVersion version{*row, 0, 0, {}, {}};
    ++(row->removed ? report_.removed : report_.versions);
    if (const MirroredVersion* known = here_.live({row->model_name, row->number}, row->manifest);
        known != nullptr && !row->removed) {
      version = *known;
    } else if (!row->removed) {
      const Needs& needs = needs_.at(row->manifest);
      version.tree_nodes = needs.tree_nodes;
      version.tree_layout = needs.tree_layout;
      for (const auto* blob : needs.blobs)
        if (brought.insert(blob->second.pack).second) version.packs.push_back(blob->second.pack);
    }
    changes.emplace_back(std::move(version));
  }
  for (const MirroredTag& tag : names_.tags) {
    const auto version = names_.versions.find({tag.model, tag.number});
    if (version == names_.versions.end() || version->second.removed) continue;
    ++report_.tags;
    changes.emplace_back(tag);
  }
  report_.models = models.size();
  return changes;
}

}  // namespace weft

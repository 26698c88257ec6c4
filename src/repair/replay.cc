#include "repair/replay.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/log.h"
#include "catalog/release.h"
#include "catalog/renumber.h"
#include "catalog/undelete.h"
#include "packs/packs.h"

namespace weft {
namespace {

// Limits of one transaction. Its changed pages stay in memory until the commit, and each tensor changes a few pages.
constexpr std::size_t kRecordsMax = 1000;
constexpr std::size_t kTensorsMax = 8192;
constexpr unsigned kTransactionsLoaded = 8;  // transactions before this process drops the mapped pages

std::string label(const VersionRow& version) {
  return fmt::format("{}@{}", version.model_name, version.number);
}

struct TensorCount {
  std::size_t operator()(const PublishEvent& event) const { return event.local.view_inos.size(); }
  std::size_t operator()(const AdoptionEvent& event) const { return event.view_inos.size(); }
  std::size_t operator()(const UndeleteEvent& event) const { return event.local.view_inos.size(); }
  template <class Other>
  std::size_t operator()(const Other& /*event*/) const {
    return 0;
  }
};

// Returns the version, such as "m@2", of a record that adds content; "" for other records.
struct BroughtBy {
  std::string operator()(const PublishEvent& event) const { return label(event.version); }
  std::string operator()(const AdoptionEvent& event) const { return fmt::format("{}@{}", event.model, event.number); }
  std::string operator()(const UndeleteEvent& event) const { return fmt::format("{}@{}", event.model, event.number); }
  template <class Other>
  std::string operator()(const Other& /*event*/) const {
    return {};
  }
};

}  // namespace

bool is_reaped(const RebuildInput& input, const JournalSurvey& survey, const VersionRow& version) {
  return ends_reaped(input, survey, version) ||
         std::ranges::any_of(survey.later_undeletes(version), &JournalSurvey::Undelete::reaped);
}

bool ends_reaped(const RebuildInput& input, const JournalSurvey& survey, const VersionRow& version) {
  return survey.is_removed(version) && !(input.unreaped && input.unreaped(version.id));
}

Status JournalReplay::add(JournaledEvent event) {
  tensors_ += std::visit(TensorCount(), event.event);
  waiting_.push_back(std::move(event));
  return waiting_.size() < kRecordsMax && tensors_ < kTensorsMax ? Status{} : flush();
}

// Applies the queued records in one transaction. If one of them cannot be applied, the transaction is rolled back, and
// each record gets its own transaction.
Status JournalReplay::flush() {
  if (waiting_.empty()) return {};
  const std::vector<JournaledEvent> events = std::exchange(waiting_, {});
  tensors_ = 0;
  Status status = apply(events, Content::read);
  if (status.ok() || !is_damage(status.error())) return status;
  for (const JournaledEvent& event : events)
    WEFT_CHECK(
        tell(report_, apply_alone(event), fmt::format("{}: the record at {}", input_.journal.path(), event.begin)));
  return {};
}

// Applies one record. If the content cannot be applied, applies the record without it.
Status JournalReplay::apply_alone(const JournaledEvent& journaled) {
  Status status = apply({&journaled, 1}, Content::read);
  if (status.ok() || status.error().code != Errc::corrupt) return status;
  const std::string version = std::visit(BroughtBy(), journaled.event);
  if (version.empty()) return status;
  WEFT_CHECK(tell(report_, std::move(status), version));
  return apply({&journaled, 1}, Content::left_out);
}

Status JournalReplay::apply(std::span<const JournaledEvent> events, Content content) {
  Found found;
  const auto replay_all = [&](Txn& txn) -> Status {
    found = {};
    for (const JournaledEvent& journaled : events) {
      if (log_debugs(LogCategory::store))
        log_debug(LogCategory::store, "replays the record at {}: {}", journaled.begin, event_text(journaled.event));
      WEFT_CHECK(std::visit([&](const auto& event) { return replay(txn, event, content, found); }, journaled.event));
    }
    return {};
  };
  WEFT_CHECK(env_.write(lock_, replay_all));
  report_.problems.insert(report_.problems.end(), found.problems.begin(), found.problems.end());
  report_.versions += found.published;
  report_.versions -= found.removed;
  missing_ += found.missing;
  if (++transactions_ % kTransactionsLoaded == 0) env_.unload_pages();
  return {};
}

// Returns the content of a version; nothing if the manifest is damaged or gone.
Result<std::optional<VersionContent>> JournalReplay::content_of(const VersionRow& version, Found& found) const {
  auto content = read_content(input_, version);
  if (content.ok()) return std::optional(std::move(*content));
  if (!is_damage(content.error())) return std::move(content).error();
  found.problems.push_back(fmt::format("{}: its content cannot be read: {}", label(version), content.error().message));
  return std::optional<VersionContent>();
}

// Records the first version of these views, whose content is left out, so that no later version counts as the first.
void JournalReplay::pass_over(std::span<const Ino> views, const FirstView& first) {
  for (const Ino view : views) first_views_.try_emplace(view, first);
}

namespace {

// Fits a publish to an index for which the record of a rename is lost. If the model is known by another name, it gets
// the publish's. If another model has the publish's name, the version joins that one: its number is larger.
Status fit(Txn& txn, PublishEvent& event) {
  VersionRow& version = event.version;
  WEFT_TRY(const std::optional<ModelRow> named, find_model(txn, version.model_name));
  if (named) version.model = named->id;
  if (named) return {};
  WEFT_TRY(const auto known, find_row<ModelNameRow>(txn, Table::model_ids, key_of(version.model)));
  if (!known) return {};
  return apply_rename(txn, {event.sequence, known->name, version.model_name, version.time_ns, event.directories});
}

}  // namespace

Status JournalReplay::replay(Txn& txn, PublishEvent event, Content content, Found& found) {
  if (survey_.any_loss()) WEFT_CHECK(fit(txn, event));
  const VersionRow& version = event.version;
  ++found.published;
  PublishInput input;
  input.reaped = is_reaped(input_, survey_, version);
  input.first_views = &first_views_;
  input.absent = true;
  input.own = is_own(input_, version);
  std::optional<VersionContent> read;
  if (!input.reaped && !event.bare && content == Content::read) {
    WEFT_TRY(read, content_of(version, found));
  }
  std::vector<NewBlob> blobs;
  if (!packs_known_ && !input.reaped) {
    WEFT_TRY(blobs, blobs_of(input_.packs, event.packs));
  }
  std::uint64_t missing = 0;
  input.content = read ? &*read : nullptr;
  input.new_blobs = blobs;
  input.missing_extents = &missing;
  if (!read) pass_over(event.local.view_inos, {version.id, version.time_ns});
  auto applied = apply_publish(txn, event, input);
  if (!applied.ok()) return std::move(applied).error();
  // A removed version is kept only for readers that have it open, and may have been removed because bytes were lost.
  if (may_lack(input_, version) || survey_.is_removed(version)) return {};
  found.missing += missing;
  if (missing != 0 && version.publisher.empty())
    found.problems.push_back(fmt::format("{}: {} of its blobs are in no pack", label(version), missing));
  return {};
}

// Reads content only for an incomplete version. A reaped version is not incomplete and needs none.
Status JournalReplay::replay(Txn& txn, const AdoptionEvent& event, Content content, Found& found) {
  WEFT_TRY(const std::optional<VersionRow> version, find_row<VersionRow>(txn, Table::versions, key_of(event.version)));
  WEFT_TRY(const bool incomplete, is_incomplete(txn, event.version));
  std::optional<VersionContent> read;
  if (version && incomplete && content == Content::read) {
    WEFT_TRY(read, content_of(*version, found));
  }
  PublishInput input;
  input.content = read ? &*read : nullptr;
  input.first_views = &first_views_;
  input.absent = true;
  if (!read) pass_over(event.view_inos, {event.version, event.published_ns});
  return apply_adoption(txn, event, input);
}

Status JournalReplay::replay(Txn& txn, const RemovalEvent& event, Content /*content*/, Found& found) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  if (survey_.is_lost(model, event.number)) return {};
  if (!model) return Error{Errc::corrupt, fmt::format("removal of {}@{}: no such model", event.model, event.number)};
  WEFT_TRY(const std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  WEFT_TRY(const bool incomplete, version ? is_incomplete(txn, version->id) : Result<bool>(false));
  std::optional<VersionContent> read;
  if (version && !version->removed && !incomplete && !is_reaped(input_, survey_, *version)) {
    WEFT_TRY(read, content_of(*version, found));
  }
  if (!version || !version->removed) ++found.removed;
  const bool last = !version || survey_.later_undeletes(*version).empty();
  const std::uint64_t released = last && read && input_.released ? input_.released(version->id) : kAllHeld;
  return apply_removal(txn, event, read ? &*read : nullptr, released);
}

// A change that sets a tag to a lost version deletes the tag instead.
Status JournalReplay::replay(Txn& txn, TagsEvent event, Content /*content*/, Found& /*found*/) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model && survey_.any_loss()) return {};
  for (TagChange& change : event.changes)
    if (change.number != 0 && survey_.is_lost(model, change.number)) change.number = 0;
  return apply_tags(txn, event);
}

Status JournalReplay::replay(Txn& txn, const RepairEvent& event, Content /*content*/, Found& /*found*/) {
  return apply_repair(txn, event);
}

Status JournalReplay::replay(Txn& txn, const NoteEvent& event, Content /*content*/, Found& /*found*/) {
  return apply_note(txn, event);
}

// A description of a version that is lost with its model has no subject.
Status JournalReplay::replay(Txn& txn, const DescriptionEvent& event, Content /*content*/, Found& /*found*/) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  return survey_.is_lost(model, event.number) ? Status{} : apply_description(txn, event);
}

Status JournalReplay::replay(Txn& txn, const RenameEvent& event, Content /*content*/, Found& /*found*/) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  return !model && survey_.any_loss() ? Status{} : apply_rename(txn, event);
}

// An undelete of a live version has only a later time, unless the record of the removal is lost. Like a publish, leaves
// out content that is released later.
Status JournalReplay::replay(Txn& txn, const UndeleteEvent& event, Content content, Found& found) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  if (survey_.is_lost(model, event.number)) return {};
  if (!model) return Error{Errc::corrupt, fmt::format("undelete of {}@{}: no such model", event.model, event.number)};
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  if (!version) return {};
  if (!version->removed) return version->undeleted_ns < event.time_ns ? apply_undelete(txn, event, {}) : Status{};
  ++found.published;
  version->undeleted_ns = event.time_ns;
  PublishInput input;
  input.reaped = is_reaped(input_, survey_, *version);
  input.first_views = &first_views_;
  input.absent = true;
  input.own = is_own(input_, *version);
  std::optional<VersionContent> read;
  if (!input.reaped && !event.bare && content == Content::read) {
    WEFT_TRY(read, content_of(*version, found));
  }
  input.content = read ? &*read : nullptr;
  if (!read) pass_over(event.local.view_inos, {version->id, version->time_ns});
  return apply_undelete(txn, event, input);
}

Status JournalReplay::replay(Txn& txn, const RenumberEvent& event, Content /*content*/, Found& /*found*/) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  return survey_.is_lost(model, event.number) ? Status{} : apply_renumber(txn, event);
}

Status JournalReplay::replay(Txn& txn, const PurgeEvent& event, Content /*content*/, Found& /*found*/) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  return survey_.is_lost(model, event.number) ? Status{} : apply_purge(txn, event);
}

}  // namespace weft

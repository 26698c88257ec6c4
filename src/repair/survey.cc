#include "repair/survey.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/limits.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

constexpr std::size_t kNamesMax = 1000;  // lost numbers that are listed one by one

// Returns a text such as "the publish of m@2", to name the neighbours of a gap.
struct Label {
  std::string operator()(const PublishEvent& event) const {
    return fmt::format("the publish of {}@{}", event.version.model_name, event.version.number);
  }
  std::string operator()(const TagsEvent& event) const { return fmt::format("a change of tags of {}", event.model); }
  std::string operator()(const RemovalEvent& event) const {
    return fmt::format("the removal of {}@{}", event.model, event.number);
  }
  std::string operator()(const RepairEvent& /*event*/) const { return "a repair"; }
  std::string operator()(const AdoptionEvent& event) const {
    return fmt::format("the adoption of {}@{}", event.model, event.number);
  }
  std::string operator()(const NoteEvent& event) const {
    return fmt::format("a note of {}@{}", event.model, event.number);
  }
  std::string operator()(const DescriptionEvent& event) const {
    return fmt::format("the message of {}@{}", event.model, event.number);
  }
  std::string operator()(const RenameEvent& event) const {
    return fmt::format("the rename of {} to {}", event.model, event.to);
  }
  std::string operator()(const RenumberEvent& event) const {
    return fmt::format("the new number of {}@{}", event.model, event.number);
  }
  std::string operator()(const PurgeEvent& event) const {
    return fmt::format("the purge of {}@{}", event.model, event.number);
  }
  std::string operator()(const UndeleteEvent& event) const {
    return fmt::format("the undelete of {}@{}", event.model, event.number);
  }
};

}  // namespace

void NumberSet::add(std::uint64_t number) {
  if (runs_.empty() || number >= end_of(runs_.back())) {
    append_run(runs_, Range{number, 1});
  } else if (!contains(number)) {
    runs_.insert(run_at(runs_, number), Range{number, 1});
  }
}

bool NumberSet::contains(std::uint64_t number) const {
  const auto run = run_at(runs_, number);
  return run != runs_.end() && run->offset <= number;
}

std::uint64_t NumberSet::size() const {
  std::uint64_t size = 0;
  for (const Range& run : runs_) size += run.length;
  return size;
}

JournalSurvey::JournalSurvey(std::string where, const std::optional<Counters>& floors) : where_(std::move(where)) {
  if (floors) counters_ = *floors;
}

void JournalSurvey::see(const JournaledEvent& journaled) {
  std::string label = std::visit(Label(), journaled.event);
  if (journaled.begin > end_) gaps_.push_back({{end_, journaled.begin - end_}, label_, label});
  end_ = journaled.end;
  label_ = std::move(label);
  sequence_ = std::max(sequence_, event_sequence(journaled.event));
  std::visit([this](const auto& event) { see(event); }, journaled.event);
}

bool JournalSurvey::is_removed(const VersionRow& version) const {
  if (!removed_.contains(version.uid)) return false;
  const auto undeleted = undeleted_.find(version.uid);
  return undeleted == undeleted_.end() || undeleted->second.removed;
}

std::span<const JournalSurvey::Undelete> JournalSurvey::later_undeletes(const VersionRow& version) const {
  const auto undeleted = undeleted_.find(version.uid);
  if (undeleted == undeleted_.end()) return {};
  const std::vector<Undelete>& all = undeleted->second.all;
  return {std::ranges::upper_bound(all, version.undeleted_ns, {}, &Undelete::time_ns), all.end()};
}

bool JournalSurvey::is_lost(const std::optional<ModelRow>& model, std::uint64_t number) const {
  if (!any_loss_) return false;
  const auto found = model ? by_id_.find(model->id) : by_id_.end();
  return found == by_id_.end() || !found->second->published.contains(number);
}

JournalSurvey::Model& JournalSurvey::named(const std::string& model) {
  Model*& known = by_name_[model];
  if (known == nullptr) {
    known = &models_.emplace_back();
    known->name = model;
  }
  return *known;
}

// The former name keeps its numbers: a model that gets it later continues after them.
void JournalSurvey::rename(std::string model, const std::string& to) {
  Model& renamed = named(model);
  renamed.name = to;
  if (const auto taken = by_name_.find(to); taken != by_name_.end())
    renamed.named_max = std::max(renamed.named_max, taken->second->named_max);
  by_name_[to] = &renamed;
  by_name_[model] =
      &models_.emplace_back(Model{model, {}, renamed.named_max, std::max(renamed.named_max + 1, renamed.floor)});
}

void JournalSurvey::name(const std::string& model, std::uint64_t number) {
  Model& seen = named(model);
  seen.named_max = std::max(seen.named_max, number);
}

void JournalSurvey::see(const TagsEvent& event) {
  for (const TagChange& change : event.changes)
    if (change.number != 0) name(event.model, change.number);
}

void JournalSurvey::see(const RemovalEvent& event) {
  removed_.insert(event.uid);
  if (const auto undeleted = undeleted_.find(event.uid); undeleted != undeleted_.end())
    undeleted->second.removed = true;
  name(event.model, event.number);
}

void JournalSurvey::see(const UndeleteEvent& event) {
  Undeleted& undeleted = undeleted_[event.uid];
  undeleted.all.push_back({event.time_ns, event.reaped});
  undeleted.removed = false;
  name(event.model, event.number);
}

// The version has both numbers: no later repair takes the former one for lost.
void JournalSurvey::see(const RenumberEvent& event) {
  named(event.model).published.add(event.to);
  name(event.model, event.to);
}

void JournalSurvey::see(const PublishEvent& event) {
  const VersionRow& version = event.version;
  versions_.add(version.id);
  counters_.next_version = std::max(counters_.next_version, version.id + 1);
  const auto known = by_id_.find(version.model);
  if (known != by_id_.end() && known->second->name != version.model_name)  // the record of a rename is lost
    rename(known->second->name, version.model_name);
  by_id_.try_emplace(version.model, &named(version.model_name));
  named(version.model_name).published.add(version.number);
  name(version.model_name, version.number);
  for (const ParentRef& parent : version.parents) name(parent.model, parent.number);
}

void JournalSurvey::see(const AdoptionEvent& event) {
  name(event.model, event.number);
}

void JournalSurvey::see(const RepairEvent& event) {
  any_loss_ = true;
  repaired_.insert(repaired_.end(), event.gaps.begin(), event.gaps.end());
  lost_before_ = std::max(lost_before_, event.lost_versions);
  counters_.number_floor = std::max(counters_.number_floor, event.counters.number_floor);
  counters_.next_version = std::max(counters_.next_version, event.counters.next_version);
  for (const NumberFloor& floor : event.models)
    named(floor.model).floor = std::max(named(floor.model).floor, floor.next_number);
}

bool JournalSurvey::is_repaired(const Gap& gap) const {
  return std::ranges::any_of(
      repaired_, [&gap](const Range& by) { return by.offset <= gap.range.offset && end_of(gap.range) <= end_of(by); });
}

void JournalSurvey::tell_gap(const Gap& gap) {
  losses_.push_back(
      fmt::format("{}: {} bytes at {} are whole in neither copy: the records after {} and before {} are "
                  "lost, tags and removals too",
                  where_, gap.range.length, gap.range.offset, gap.before, gap.after));
}

// Reports the numbers up to the largest known one of each model that have no record of a publish. Returns their count.
std::uint64_t JournalSurvey::tell_numbers() {
  std::uint64_t count = 0;
  for (const auto& [name, model] : by_name_)
    for (std::uint64_t number = model->floor; number <= model->named_max; ++number) {
      if (model->published.contains(number)) continue;
      if (++count <= kNamesMax)
        losses_.push_back(fmt::format("{}@{}: the record of its publish is lost", name, number));
    }
  if (count > kNamesMax) losses_.push_back(fmt::format("and {} versions more", count - kNamesMax));
  return count;
}

Status JournalSurvey::tell_tags(const Journal& journal) {
  std::map<std::string, const Model*> names;  // at each place of the journal
  const auto tell = [this, &names](const JournaledEvent& journaled) -> Status {
    if (const auto* publish = std::get_if<PublishEvent>(&journaled.event))
      names[publish->version.model_name] = by_id_.at(publish->version.model);
    if (const auto* renamed = std::get_if<RenameEvent>(&journaled.event))
      names[renamed->to] = std::exchange(names[renamed->model], nullptr);
    const auto* tags = std::get_if<TagsEvent>(&journaled.event);
    if (tags == nullptr) return {};
    const Model* const model = names[tags->model];
    for (const TagChange& change : tags->changes)
      if (change.number != 0 && (model == nullptr || !model->published.contains(change.number)))
        losses_.push_back(fmt::format("tag {} of {}: it was set to {}@{}, which is lost", change.name, tags->model,
                                      tags->model, change.number));
    return {};
  };
  auto read = journal.each(0, end_, tell);
  return read.ok() ? Status{} : Status{std::move(read).error()};
}

void JournalSurvey::tell_unnamed(std::uint64_t count) {
  if (count == 0) return;
  losses_.push_back(fmt::format("{}: {} publishes more are lost, of models that no other record names", where_, count));
}

// Plans the repair. Any model may have had the publishes that no record names, so each model skips `unnamed` numbers.
void JournalSurvey::plan_repair(std::uint64_t lost, std::uint64_t unnamed) {
  RepairEvent repair;
  repair.sequence = sequence_ + 1;
  repair.time_ns = now_ns();
  for (const Gap& gap : gaps_)
    if (gap.range.offset < end_)
      repair.gaps.push_back(gap.range);  // the repair itself is written at the end of the last record
  repair.lost_versions = lost;
  for (const auto& [name, model] : by_name_) {
    std::uint64_t next = std::max(model->named_max + 1, model->floor) + unnamed;
    repair.models.push_back({name, std::min(next, limits::kVersionNumberMax)});
  }
  repair.counters = counters_;
  repair.counters.number_floor = std::min(counters_.number_floor + unnamed, limits::kVersionNumberMax - 1);
  repair.lost = losses_;
  repair_ = std::move(repair);
}

// Version ids are consecutive, except after large publishes that died (catalog/attach.h). So missing ids are an upper
// bound of the lost publishes, including those that no other record names.
Status JournalSurvey::plan_repair(const Journal& journal, std::uint64_t expected_end) {
  std::erase_if(gaps_, [this](const Gap& gap) { return is_repaired(gap); });
  if (expected_end > end_) gaps_.push_back({{end_, expected_end - end_}, label_, "the end"});
  if (gaps_.empty()) return {};
  any_loss_ = true;
  for (const Gap& gap : gaps_) tell_gap(gap);
  const std::uint64_t named = tell_numbers();
  WEFT_CHECK(tell_tags(journal));
  const std::uint64_t given = counters_.next_version - 1;
  const std::uint64_t lost = given - std::min(given, versions_.size());
  const std::uint64_t known = lost_before_ + named;
  const std::uint64_t unnamed = lost - std::min(lost, known);
  tell_unnamed(unnamed);
  plan_repair(lost, unnamed);
  return {};
}

}  // namespace weft

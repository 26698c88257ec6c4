#include "repair/survey.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include <fmt/core.h>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::size_t kNamesMax = 1000;  // lost numbers that are told one by one

// "the publish of m@2": so that a gap has neighbours.
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
  std::string operator()(const PinEvent& event) const {
    return fmt::format("a pin of {}@{}", event.model, event.number);
  }
};

std::string label(const Event* event, std::string_view none) {
  return event == nullptr ? std::string(none) : std::visit(Label(), *event);
}

}  // namespace

JournalSurvey::JournalSurvey(const JournalTail& tail, const std::optional<Counters>& mark, std::uint64_t expected_end,
                             const std::string& where) {
  if (mark) counters_ = *mark;
  for (const JournaledEvent& journaled : tail.events) {
    sequence_ = std::max(sequence_, event_sequence(journaled.event));
    std::visit([this](const auto& event) { see(event); }, journaled.event);
  }
  std::vector<Range> gaps = open_gaps(tail, expected_end);
  any_loss_ = any_loss_ || !gaps.empty();
  if (!gaps.empty()) settle(tail, std::move(gaps), where);
}

bool JournalSurvey::is_lost(const std::string& model, std::uint64_t number) const {
  if (!any_loss_) return false;
  auto found = models_.find(model);
  return found == models_.end() || !found->second.published.contains(number);
}

void JournalSurvey::name(const std::string& model, std::uint64_t number) {
  Model& seen = models_[model];
  seen.named_max = std::max(seen.named_max, number);
}

void JournalSurvey::see(const TagsEvent& event) {
  tags_.push_back(&event);
  for (const TagChange& change : event.changes)
    if (change.number != 0) name(event.model, change.number);
}

void JournalSurvey::see(const RemovalEvent& event) {
  removed_.emplace(event.model, event.number);
  name(event.model, event.number);
}

void JournalSurvey::see(const PublishEvent& event) {
  publishes_.push_back(&event);
  const VersionRow& version = event.version;
  versions_.insert(version.id);
  counters_.next_version = std::max(counters_.next_version, version.id + 1);
  models_[version.model_name].published.insert(version.number);
  name(version.model_name, version.number);
  for (const ParentRef& parent : version.parents) name(parent.model, parent.number);
  for (Ino ino : event.local.view_inos) first_views_.try_emplace(ino, FirstView{version.id, version.time_ns});
}

void JournalSurvey::see(const AdoptionEvent& event) {
  name(event.model, event.number);
  for (Ino ino : event.view_inos) first_views_.try_emplace(ino, FirstView{event.version, event.published_ns});
}

void JournalSurvey::see(const RepairEvent& event) {
  any_loss_ = true;
  settled_.insert(settled_.end(), event.gaps.begin(), event.gaps.end());
  lost_before_ = std::max(lost_before_, event.lost_versions);
  counters_.number_floor = std::max(counters_.number_floor, event.counters.number_floor);
  counters_.next_version = std::max(counters_.next_version, event.counters.next_version);
  for (const NumberFloor& floor : event.models)
    models_[floor.model].floor = std::max(models_[floor.model].floor, floor.next_number);
}

std::vector<Range> JournalSurvey::open_gaps(const JournalTail& tail, std::uint64_t expected_end) const {
  std::vector<Range> gaps;
  auto settled = [this](const Range& gap) {
    return std::any_of(settled_.begin(), settled_.end(), [&gap](const Range& by) {
      return by.offset <= gap.offset && gap.offset + gap.length <= by.offset + by.length;
    });
  };
  for (const Range& gap : tail.gaps)
    if (!settled(gap)) gaps.push_back(gap);
  if (expected_end > tail.end) gaps.push_back({tail.end, expected_end - tail.end});
  return gaps;
}

void JournalSurvey::tell_gap(const JournalTail& tail, const Range& gap, const std::string& where) {
  const Event* before = nullptr;
  const Event* after = nullptr;
  for (const JournaledEvent& event : tail.events) {
    if (event.end <= gap.offset) before = &event.event;
    if (event.begin >= gap.offset && after == nullptr) after = &event.event;
  }
  losses_.push_back(
      fmt::format("{}: {} bytes at {} are whole in neither copy: what was said after {} and before {} is "
                  "lost, tags and removals too",
                  where, gap.length, gap.offset, label(before, "the beginning"), label(after, "the end")));
}

// Numbers below the largest that somebody names, without the record of a publish. Returns how many.
std::uint64_t JournalSurvey::tell_numbers() {
  std::uint64_t count = 0;
  for (const auto& [name, model] : models_)
    for (std::uint64_t number = model.floor; number <= model.named_max; ++number) {
      if (model.published.contains(number)) continue;
      if (++count <= kNamesMax)
        losses_.push_back(fmt::format("{}@{}: the record of its publish is lost", name, number));
    }
  if (count > kNamesMax) losses_.push_back(fmt::format("and {} versions more", count - kNamesMax));
  return count;
}

void JournalSurvey::tell_tags() {
  for (const TagsEvent* tags : tags_)
    for (const TagChange& change : tags->changes)
      if (change.number != 0 && is_lost(tags->model, change.number))
        losses_.push_back(fmt::format("tag {} of {}: it was set to {}@{}, which is lost", change.name, tags->model,
                                      tags->model, change.number));
}

// Version ids have no holes of their own: they tell how many publishes are lost, also those that no other record names.
// Any model may have had them, so all numbers go on behind so many.
void JournalSurvey::settle(const JournalTail& tail, std::vector<Range> gaps, const std::string& where) {
  for (const Range& gap : gaps) tell_gap(tail, gap, where);
  std::uint64_t named = tell_numbers();
  tell_tags();
  std::uint64_t lost = counters_.next_version - 1 - std::min(counters_.next_version - 1, versions_.size());
  std::uint64_t known = lost_before_ + named;
  std::uint64_t unnamed = lost - std::min(lost, known);
  if (unnamed != 0)
    losses_.push_back(
        fmt::format("{}: {} publishes more are lost, of models that no other record names", where, unnamed));
  RepairEvent repair;
  repair.sequence = sequence_ + 1;
  repair.time_ns = now_ns();
  std::erase_if(gaps, [&tail](const Range& gap) { return gap.offset >= tail.end; });  // where the repair will lie
  repair.gaps = std::move(gaps);
  repair.lost_versions = lost;
  for (const auto& [name, model] : models_) {
    std::uint64_t next = std::max(model.named_max + 1, model.floor) + unnamed;
    repair.models.push_back({name, std::min(next, limits::kVersionNumberMax)});
  }
  repair.counters = counters_;
  repair.counters.number_floor = std::min(counters_.number_floor + unnamed, limits::kVersionNumberMax - 1);
  repair.lost = losses_;
  repair_ = std::move(repair);
}

}  // namespace weft

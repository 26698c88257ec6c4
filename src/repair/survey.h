// What the journal says as a whole, before its events are replayed: what was removed in the end, and what is lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/apply.h"
#include "catalog/journal.h"

namespace weft {

class JournalSurvey {
 public:
  // `expected_end`: where the journal should end, by its mark or by the index.
  JournalSurvey(const JournalTail& tail, const std::optional<Counters>& mark, std::uint64_t expected_end,
                const std::string& where);

  bool is_removed(const std::string& model, std::uint64_t number) const { return removed_.contains({model, number}); }
  // It was published, and the record of that is lost, now or since a repair.
  bool is_lost(const std::string& model, std::uint64_t number) const;
  const std::unordered_map<Ino, FirstView>& first_views() const { return first_views_; }

  // In the order of the journal, which the caller keeps.
  const std::vector<const PublishEvent*>& publishes() const { return publishes_; }

  // One line for each thing that is lost and that no repair has settled, by name where one is known.
  const std::vector<std::string>& losses() const { return losses_; }
  // What going on without them means; none when nothing is lost.
  const std::optional<RepairEvent>& repair() const { return repair_; }

 private:
  struct Model {
    std::set<std::uint64_t> published;
    std::uint64_t named_max = 0;  // by any record
    std::uint64_t floor = 1;      // numbers from here on were free after the last repair
  };
  void see(const PublishEvent& event);
  void see(const TagsEvent& event);
  void see(const RemovalEvent& event);
  void see(const RepairEvent& event);
  void see(const AdoptionEvent& event);
  void see(const PinEvent& /*event*/) {}
  void name(const std::string& model, std::uint64_t number);
  std::vector<Range> open_gaps(const JournalTail& tail, std::uint64_t expected_end) const;
  void tell_gap(const JournalTail& tail, const Range& gap, const std::string& where);
  std::uint64_t tell_numbers();
  void tell_tags();
  void settle(const JournalTail& tail, std::vector<Range> gaps, const std::string& where);

  std::set<std::pair<std::string, std::uint64_t>> removed_;
  std::unordered_map<Ino, FirstView> first_views_;
  std::vector<const PublishEvent*> publishes_;
  std::vector<const TagsEvent*> tags_;
  std::map<std::string, Model> models_;
  std::set<VersionId> versions_;
  std::vector<Range> settled_;
  Counters counters_;  // floors
  std::uint64_t sequence_ = 0;
  std::uint64_t lost_before_ = 0;  // publishes, of settled gaps
  bool any_loss_ = false;          // now, or settled
  std::vector<std::string> losses_;
  std::optional<RepairEvent> repair_;
};

}  // namespace weft

// What the journal says as a whole, before its events are replayed: what was removed in the end, and what is lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/journal.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Numbers as runs of consecutive ones: a model of many versions takes little memory.
class NumberSet {
 public:
  void add(std::uint64_t number);
  bool contains(std::uint64_t number) const;
  std::uint64_t size() const;

 private:
  std::vector<Range> runs_;
};

// Sees all records in the order of the journal. Its memory grows with the models and not with the versions.
class JournalSurvey {
 public:
  // `floors`: numbers below these were given, as the mark of the journal or the index says.
  JournalSurvey(std::string where, const std::optional<Counters>& floors);
  void see(const JournaledEvent& journaled);
  // After the last record: finds out what is lost. `expected_end`: where the journal should end. Reads the tags again
  // if something is lost.
  Status settle(const Journal& journal, std::uint64_t expected_end);

  bool is_removed(const std::string& model, std::uint64_t number) const;
  // It was published, and the record of that is lost, now or since a repair.
  bool is_lost(const std::string& model, std::uint64_t number) const;

  // One line for each thing that is lost and that no repair has settled, by name where one is known.
  const std::vector<std::string>& losses() const { return losses_; }
  // What going on without them means; none when nothing is lost.
  const std::optional<RepairEvent>& repair() const { return repair_; }

 private:
  struct Model {
    NumberSet published, removed;
    std::uint64_t named_max = 0;  // by any record
    std::uint64_t floor = 1;      // numbers from here on were free after the last repair
  };
  struct Gap {
    Range range;
    std::string before, after;  // labels of its neighbours
  };
  void see(const PublishEvent& event);
  void see(const TagsEvent& event);
  void see(const RemovalEvent& event);
  void see(const RepairEvent& event);
  void see(const AdoptionEvent& event);
  void see(const NoteEvent& /*event*/) {}
  void name(const std::string& model, std::uint64_t number);
  bool is_settled(const Gap& gap) const;
  void tell_gap(const Gap& gap);
  std::uint64_t tell_numbers();
  Status tell_tags(const Journal& journal);
  void tell_unnamed(std::uint64_t count);
  void plan_repair(std::uint64_t lost, std::uint64_t unnamed);

  const std::string where_;
  std::map<std::string, Model> models_;
  NumberSet versions_;
  std::vector<Gap> gaps_;
  std::vector<Range> settled_;
  std::uint64_t end_ = 0;                // of the last record
  std::string label_ = "the beginning";  // of the last record
  Counters counters_;                    // floors
  std::uint64_t sequence_ = 0;
  std::uint64_t lost_before_ = 0;  // publishes, of settled gaps
  bool any_loss_ = false;          // now, or settled
  std::vector<std::string> losses_;
  std::optional<RepairEvent> repair_;
};

}  // namespace weft

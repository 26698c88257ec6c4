// Reads the whole journal before its events are replayed, and finds all removed versions and all losses.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "catalog/journal.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// A set of numbers, stored as runs of consecutive numbers, so that a model with many versions needs little memory.
class NumberSet {
 public:
  void add(std::uint64_t number);
  bool contains(std::uint64_t number) const;
  std::uint64_t size() const;

 private:
  std::vector<Range> runs_;
};

// Needs all records in the order of the journal. Its memory grows with the number of models, not of versions.
class JournalSurvey {
 public:
  // `floors`: numbers and ids below these are in use, according to the mark of the journal or to the index.
  JournalSurvey(std::string where, const std::optional<Counters>& floors);
  void see(const JournaledEvent& journaled);
  // Call after the last record. Computes what the damaged journal lost. `expected_end` is the expected end of the
  // journal. Reads the tags again if records are lost.
  Status plan_repair(const Journal& journal, std::uint64_t expected_end);

  bool is_removed(const VersionRow& version) const;  // after the last record
  // An undelete in the journal. reaped: gc had released the version's content before.
  struct Undelete {
    std::uint64_t time_ns = 0;
    bool reaped = false;
  };
  // Returns the undeletes of a version after the one that its row has, in order.
  std::span<const Undelete> later_undeletes(const VersionRow& version) const;
  // True if the record of the version's publish is lost, also if a repair has accepted the loss. `model`: of the
  // version, in the index so far; nothing if the index has no such model.
  bool is_lost(const std::optional<ModelRow>& model, std::uint64_t number) const;
  bool any_loss() const { return any_loss_; }

  // Returns a line for each loss that no repair has accepted, with the version's name if it is known.
  const std::vector<std::string>& losses() const { return losses_; }
  // Returns the repair that accepts these losses; nothing if no record is lost.
  const std::optional<RepairEvent>& repair() const { return repair_; }

 private:
  struct Model {
    std::string name;  // at this place of the journal
    NumberSet published;
    std::uint64_t named_max = 0;  // largest number in any record
    std::uint64_t floor = 1;      // smallest free number after the last repair
  };
  struct Undeleted {
    std::vector<Undelete> all;  // in the order of the journal, whose times grow
    bool removed = false;       // again
  };
  struct Gap {
    Range range;
    std::string before, after;  // labels of the neighbouring records
  };
  void see(const PublishEvent& event);
  void see(const TagsEvent& event);
  void see(const RemovalEvent& event);
  void see(const RepairEvent& event);
  void see(const AdoptionEvent& event);
  void see(const NoteEvent& /*event*/) {}
  void see(const DescriptionEvent& event) { name(event.model, event.number); }
  void see(const RenameEvent& event) { rename(event.model, event.to); }
  void see(const UndeleteEvent& event);
  void see(const PurgeEvent& event) { name(event.model, event.number); }
  void see(const RenumberEvent& event);
  Model& named(const std::string& model);
  void rename(std::string model, const std::string& to);
  void name(const std::string& model, std::uint64_t number);
  bool is_repaired(const Gap& gap) const;
  void tell_gap(const Gap& gap);
  std::uint64_t tell_numbers();
  Status tell_tags(const Journal& journal);
  void tell_unnamed(std::uint64_t count);
  void plan_repair(std::uint64_t lost, std::uint64_t unnamed);

  const std::string where_;
  std::deque<Model> models_;
  std::map<std::string, Model*> by_name_;  // by the names at this place of the journal
  std::unordered_map<ModelId, Model*> by_id_;
  NumberSet versions_;
  std::set<Uuid> removed_;               // identities of versions that were ever removed
  std::map<Uuid, Undeleted> undeleted_;  // by identity
  std::vector<Gap> gaps_;
  std::vector<Range> repaired_;
  std::uint64_t end_ = 0;                // end of the last record
  std::string label_ = "the beginning";  // label of the last record
  Counters counters_;                    // floors
  std::uint64_t sequence_ = 0;
  std::uint64_t lost_before_ = 0;  // lost publishes that a repair has accepted
  bool any_loss_ = false;          // records are lost, accepted or not
  std::vector<std::string> losses_;
  std::optional<RepairEvent> repair_;
};

}  // namespace weft

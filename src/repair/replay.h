// Applies the records of a journal to a rebuilt index, many in one transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "catalog/apply.h"
#include "catalog/journal.h"
#include "index/env.h"
#include "repair/rebuild_input.h"
#include "repair/survey.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store/fsck.h"

namespace weft {

// Add records in the order of the journal. A record that cannot be applied gets a line in the report, and changes
// nothing. One thread. All arguments outlive this.
class JournalReplay {
 public:
  JournalReplay(Env& env, const WriterLock& lock, const RebuildInput& input, const JournalSurvey& survey,
                FsckReport& report)
      : env_(env), lock_(lock), input_(input), survey_(survey), report_(report) {}

  // Queues a record. Applies the queue if it is large enough for a transaction.
  Status add(JournaledEvent event);
  Status flush();  // applies all queued records
  // Call if the index lacks the new packs of later publishes.
  void expect_packs() { packs_known_ = false; }
  std::uint64_t missing() const { return missing_; }  // extents that versions need and no pack has

 private:
  // The findings of a transaction, reported after its commit.
  struct Found {
    std::vector<std::string> problems;
    std::uint64_t published = 0, removed = 0, missing = 0;
  };
  enum class Content : std::uint8_t { read, left_out };
  Status apply(std::span<const JournaledEvent> events, Content content);
  Status apply_alone(const JournaledEvent& journaled);
  Status replay(Txn& txn, PublishEvent event, Content content, Found& found);
  Status replay(Txn& txn, TagsEvent event, Content content, Found& found);
  Status replay(Txn& txn, const RemovalEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const RepairEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const AdoptionEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const NoteEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const DescriptionEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const RenameEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const UndeleteEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const RenumberEvent& event, Content content, Found& found);
  Status replay(Txn& txn, const PurgeEvent& event, Content content, Found& found);
  Result<std::optional<VersionContent>> content_of(const VersionRow& version, Found& found) const;
  void pass_over(std::span<const Ino> views, const FirstView& first);

  Env& env_;
  const WriterLock& lock_;
  const RebuildInput& input_;
  const JournalSurvey& survey_;
  FsckReport& report_;
  std::vector<JournaledEvent> waiting_;
  std::size_t tensors_ = 0;  // tensors of the queued records
  unsigned transactions_ = 0;
  bool packs_known_ = true;
  std::unordered_map<Ino, FirstView> first_views_;  // views of versions whose content is left out
  std::uint64_t missing_ = 0;
};

// True if gc has released the content of a version after one of its later removals. The rebuild leaves such content
// out.
bool is_reaped(const RebuildInput& input, const JournalSurvey& survey, const VersionRow& version);
// True if gc has released its content after its last removal.
bool ends_reaped(const RebuildInput& input, const JournalSurvey& survey, const VersionRow& version);

}  // namespace weft

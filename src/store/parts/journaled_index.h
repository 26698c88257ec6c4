// The index and its journal. A commit applies events to a transaction, makes their records durable in the journal, and
// then commits the index. If the process dies in between, the next writer replays the records.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "catalog/apply.h"
#include "catalog/journal.h"
#include "catalog/renumber.h"
#include "diskformat/events.h"
#include "index/env.h"
#include "os/safe_path.h"
#include "packs/packs.h"
#include "store/parts/cluster_facts.h"
#include "store/parts/contents.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Called during a journaled commit, for tests that kill the process there.
struct CommitHooks {
  std::function<void()> before_journal;  // events applied, nothing durable
  std::function<void()> after_journal;   // the record is durable, the index is not
  std::function<void()> after_commit;
  std::function<void()> after_part;  // of a large publish (catalog/attach.h): the part is durable, the writer lock free
};

// For changes that the registry can repeat, after_shown: readers see them at once. They become durable before another
// writer can commit.
enum class Durable : std::uint8_t { before_shown, after_shown };

using Events = std::vector<Event>;
// Makes events and applies them to the transaction. No events: there is nothing to commit. Called again after the map
// has grown.
using MakeEvents = std::function<Result<Events>(Txn&)>;

// The sources from which a replay reads the content of events.
struct ReplaySources {
  const ClusterFacts& cluster;
  const Packs& packs;
  const Contents& contents;
};

// Any thread. All writes to the index of a store go through it. Lock order: the writer lock, then the mutex of the
// commits that are not durable yet.
class JournaledIndex {
 public:
  JournaledIndex(SafePath store_path, std::unique_ptr<Env> env, const ReplaySources& sources, const CommitHooks& hooks)
      : path_(std::move(store_path)), env_(std::move(env)), journal_(path_), sources_(sources), hooks_(hooks) {}

  // Waits for the writer lock, makes earlier commits durable, and replays the journal into the index.
  Result<WriterLock> lock();
  // Errors of `make` abort the commit.
  Status commit(const WriterLock& lock, const MakeEvents& make, Durable durable = Durable::before_shown);
  // For commits that free space: if the disk is full, uses the spare space.
  Status commit_with_spare(const WriterLock& lock, const MakeEvents& make, Durable durable = Durable::before_shown);
  // A change of the index that the journal does not record, as Env::write().
  Status write(const WriterLock& lock, const std::function<Status(Txn&)>& body) { return env_->write(lock, body); }
  Result<Txn> read() { return env_->read(); }
  // Replays records that the index lacks. Part of lock().
  Status catch_up(const WriterLock& lock);
  // Applies a removal, as in a replay. Returns the number of erased rows, approximately.
  Result<std::size_t> remove(Txn& txn, const RemovalEvent& event);

  Env& env() { return *env_; }
  const Journal& journal() const { return journal_; }
  Result<std::uint64_t> journal_end();  // of the index's current state
  // Returns about `kEventBytes` of records from `from` on, and at least one if there is any before `end`, the journal
  // end of some index state. The next call starts at JournalTail::end.
  Result<JournalTail> some_events(std::uint64_t from, std::uint64_t end);

  // For the start of a daemon: makes the commits of an earlier daemon durable. False: the journal has lost some of
  // them, and was cut off before the damage, so the index must be rebuilt.
  Result<bool> flush_shown();
  // Returns how many bytes of the journal the machine lost when it stopped: the index is ahead of it. The caller holds
  // the writer lock.
  Result<std::uint64_t> lost_by_stop();

 private:
  struct Unflushed {
    std::uint64_t begin = 0;  // start of the records in the journal
    Counters counters;
  };
  struct Shown {
    Counters mark, counters;  // of the journal's last durable mark, and of the index
    std::uint64_t whole = 0;  // the journal is undamaged up to here
  };
  Status commit_once(Txn& txn, const Events& events, Durable durable) WEFT_EXCLUDES(flushing_);
  Status undo(std::uint64_t journal_end, const Status& failure);
  Status flush() WEFT_EXCLUDES(flushing_);
  Result<std::optional<Shown>> shown() const;
  Status replay(const WriterLock& lock, const JournaledEvent& journaled);
  Status replay(Txn& txn, const PublishEvent& event);
  Status replay(Txn& txn, const TagsEvent& event) const { return apply_tags(txn, event); }
  Status replay(Txn& txn, const RemovalEvent& event);
  Status replay(Txn& txn, const RepairEvent& event) const;
  Status replay(Txn& txn, const AdoptionEvent& event);
  Status replay(Txn& txn, const NoteEvent& event) const { return apply_note(txn, event); }
  Status replay(Txn& txn, const DescriptionEvent& event) const { return apply_description(txn, event); }
  Status replay(Txn& txn, const RenameEvent& event) const { return apply_rename(txn, event); }
  Status replay(Txn& txn, const UndeleteEvent& event);
  Status replay(Txn& txn, const RenumberEvent& event) const { return apply_renumber(txn, event); }
  Status replay(Txn& txn, const PurgeEvent& event) const { return apply_purge(txn, event); }

  const SafePath path_;
  const std::unique_ptr<Env> env_;
  const Journal journal_;
  const ReplaySources sources_;
  const CommitHooks& hooks_;
  Mutex flushing_;  // locked after the writer lock
  std::optional<Unflushed> unflushed_ WEFT_GUARDED_BY(flushing_);
};

// Returns the flags of a version's PublishInput, which depend on its publisher: a registry's node or this store alone.
PublishInput input_of(const ClusterFacts& cluster, const VersionRow& version);

// Sets or removes a note of a live version. Returns no events if nothing changes.
Result<Events> set_note(Txn& txn, const VersionRow& version, VersionNote note, bool set);

}  // namespace weft

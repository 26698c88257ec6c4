// Commits of a registry's changes: readers see them before they are durable (Durable::after_shown). At that time the
// records are in the .log and the index pages were written, so the death of this process loses nothing. If the machine
// stops then, the index may be ahead of the journal; the last mark shows that.
#include "index/tables.h"
#include "store/parts/journaled_index.h"

namespace weft {

Status JournaledIndex::flush() {
  const MutexLock flushing(flushing_);
  if (!unflushed_) return {};
  WEFT_CHECK(journal_.flush(unflushed_->begin, unflushed_->counters));
  WEFT_CHECK(env_->sync());
  unflushed_.reset();
  return {};
}

// Returns the commits that an earlier daemon did not flush(); nothing if the last mark covers the index.
Result<std::optional<JournaledIndex::Shown>> JournaledIndex::shown() const {
  Shown shown;
  {
    WEFT_TRY(Txn txn, env_->read());
    WEFT_TRY(shown.counters, get_counters(txn));
  }
  WEFT_TRY(const std::optional<Counters> mark, journal_.mark());
  if (!mark || mark->journal_end >= shown.counters.journal_end) return std::optional<Shown>();
  shown.mark = *mark;
  WEFT_TRY(const JournalTail tail, journal_.read(mark->journal_end, shown.counters.journal_end));
  shown.whole = tail.gaps.empty() ? tail.end : tail.gaps.front().offset;
  return std::optional(shown);
}

Result<bool> JournaledIndex::flush_shown() {
  if (!sources_.cluster.joined()) return true;
  WEFT_TRY(const WriterLock lock, env_->lock_writer());
  WEFT_TRY(const std::optional<Shown> shown, this->shown());
  if (!shown) return true;
  WEFT_TRY(const std::uint64_t size, journal_.size());
  if (shown->whole < shown->counters.journal_end) {
    WEFT_CHECK(journal_.truncate(shown->whole));
    return false;
  }
  if (size < shown->whole) {
    WEFT_CHECK(journal_.mend(shown->whole, shown->counters));
  } else {
    WEFT_CHECK(journal_.flush(shown->mark.journal_end, shown->counters));
  }
  WEFT_CHECK(env_->sync());
  return true;
}

Result<std::uint64_t> JournaledIndex::lost_by_stop() {
  WEFT_TRY(const std::optional<Shown> shown, this->shown());
  return shown ? shown->counters.journal_end - shown->whole : 0;
}

}  // namespace weft

// Commits of what a registry has told: readers see them before they are durable (Durable::after_shown). Records are in
// the .log by then and pages of the index on the disk, so that whoever kills this process takes nothing away. A machine
// that stops in that moment may keep an index that is ahead of its journal; the last mark tells.
#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "store/rebuild.h"
#include "store/store_impl.h"

namespace weft {

void StoreImpl::unsettle(const Unsettled& shown) {
  const std::lock_guard settling(settling_);
  unsettled_ = shown;
}

Status StoreImpl::settle() {
  const std::lock_guard settling(settling_);
  if (!unsettled_) return {};
  WEFT_CHECK(journal_.settle(unsettled_->begin, unsettled_->counters));
  WEFT_CHECK(env_->sync());
  unsettled_.reset();
  return {};
}

// What an earlier daemon has left to settle(). False: the journal has lost some of it, and ends where it is whole now.
Result<bool> StoreImpl::settle_shown() {
  if (!cluster_) return true;
  WEFT_TRY(const WriterLock lock, env_->lock_writer());
  WEFT_TRY(Counters counters, ([this]() -> Result<Counters> {
             WEFT_TRY(Txn txn, env_->read());
             return get_counters(txn);
           })());
  WEFT_TRY(const std::optional<Counters> mark, journal_.mark());
  if (!mark || mark->journal_end >= counters.journal_end) return true;
  WEFT_TRY(const JournalTail tail, journal_.read(mark->journal_end, counters.journal_end));
  const std::uint64_t whole = tail.gaps.empty() ? tail.end : tail.gaps.front().offset;
  WEFT_TRY(const std::uint64_t size, journal_.size());
  if (whole < counters.journal_end) {
    WEFT_CHECK(journal_.truncate(whole));
    return false;
  }
  if (size < whole) {
    WEFT_CHECK(journal_.mend(whole, counters));
  } else {
    WEFT_CHECK(journal_.settle(mark->journal_end, counters));
  }
  WEFT_CHECK(env_->sync());
  return true;
}

// The registry tells again what is behind the revision that the rebuilt index has.
Status StoreImpl::rebuild_shown(const std::string& path, const OpenOptions& options) {
  if (!options.decode) return {};
  log_warning(
      "{}: the machine stopped while changes were written, and the index is ahead of its journal; rebuilding it", path);
  auto report = rebuild_store(path, options.decode, {false, options.patience}, no_progress());
  if (!report.ok()) return std::move(report).error();
  for (const std::string& problem : report->problems) log_warning("{}: {}", path, problem);
  return {};
}

}  // namespace weft

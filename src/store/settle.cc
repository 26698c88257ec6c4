// Commits of a registry's changes: readers see them before they are durable (Durable::after_shown). At that time the
// records are in the .log and the index pages were written, so the death of this process loses nothing. If the machine
// stops then, the index may be ahead of the journal; the last mark shows that.
#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "catalog/cluster_files.h"
#include "repair/rebuild.h"
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

// Returns the commits that an earlier daemon did not settle(); nothing if the last mark covers the index.
Result<std::optional<StoreImpl::Shown>> StoreImpl::shown() const {
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

// Settles the commits of an earlier daemon. False: the journal has lost some of them, and was cut off before the
// damage.
Result<bool> StoreImpl::settle_shown() {
  if (!cluster()) return true;
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
    WEFT_CHECK(journal_.settle(shown->mark.journal_end, shown->counters));
  }
  WEFT_CHECK(env_->sync());
  return true;
}

// For fsck, if the machine has stopped and the daemon has not run since.
Status StoreImpl::look_at_stopped(FsckReport& report) const {
  if (!cluster()) return {};
  const auto alone = lock_against_daemon(path_);
  if (!alone.ok() && alone.error().code == Errc::busy) return {};  // the running daemon has settled its commits
  WEFT_TRY(const WriterLock lock, Env::lock_writer(path_ / "index", options_.patience));
  const auto shown = this->shown();
  if (shown.ok() && *shown && (*shown)->whole < (*shown)->counters.journal_end)
    report.problems.push_back(fmt::format(
        "{}: the machine stopped before the last {} bytes of its journal were written, and the index is ahead of it; "
        "weftd makes it anew when it starts, and the registry tells again what is missing",
        path_, (*shown)->counters.journal_end - (*shown)->whole));
  return {};
}

// Rebuilds an index that is ahead of its journal. The registry then sends the changes after the rebuilt revision again.
Status StoreImpl::rebuild_shown(const SafePath& path, const OpenOptions& options) {
  if (!options.decode) return {};
  log_warning(
      "{}: the machine stopped while changes were written, and the index is ahead of its journal; rebuilding it", path);
  auto report = rebuild_store(path, options.decode, {false, options.patience, false}, no_progress());
  if (!report.ok()) return std::move(report).error();
  for (const std::string& problem : report->problems) log_warning("{}: {}", path, problem);
  return {};
}

}  // namespace weft

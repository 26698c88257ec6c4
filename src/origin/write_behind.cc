#include "origin/write_behind.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "base/worker.h"
#include "blobs/revocable_store.h"
#include "origin/dir.h"
#include "origin/stage.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kSavesBetweenTelling = 64;
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kPauseMin = std::chrono::milliseconds(1'000);  // after a failure; doubles with each further one
constexpr auto kPauseMax = std::chrono::milliseconds(30'000);
constexpr RetryPause kRetry(kPauseMin, kPauseMax);
constexpr auto kEndWait = std::chrono::milliseconds(2'000);

}  // namespace

// Shared with the worker's thread, which may outlive the WriteBehind.
struct WriteBehind::State final : public Progress {
  State(Store& of, OriginLedger& in, std::string path, LatestCollection collection, const TimeSource& time,
        std::shared_ptr<PaceGate> paces)
      : ledger(in),
        latest_collection(std::move(collection)),
        gate(std::move(paces)),
        store(of),
        origin_path(std::move(path)),
        worker("not at the origin yet", kRetry, time) {}

  OriginLedger& ledger;                      // use only inside store.use(), as the next one
  const LatestCollection latest_collection;  // may be empty
  const std::shared_ptr<PaceGate> gate;      // null: the writes are not paced
  RevocableStore store;
  const std::string origin_path;
  VersionId untried = 0;     // only the worker uses this: versions from here on have not been tried
  SearchedFor searched_for;  // only the worker uses this
  std::atomic<std::uint64_t> bytes_written = 0;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::multiset<VersionId> first;  // versions that callers wait for; guarded by mutex, as all but the worker below
  struct Lost {
    std::uint64_t round = 0;
    std::string why;
  };
  std::map<VersionId, Lost> lost;  // versions that lack bytes which no known node would write
  std::string active;
  std::uint64_t saved = 0;
  std::uint64_t records = 0;                // journal records written
  std::optional<std::uint64_t> replicated;  // journal offset up to which the origin has the events; empty: not read yet
  std::string problem;
  std::uint64_t rounds = 0;         // rounds begun
  std::uint64_t refused_round = 0;  // latest round that found an unknown origin, or none
  std::size_t takers = 0;           // callers in take_new_origin()
  bool take_new = false;            // the next round adopts the origin that it finds
  std::uint64_t taken_round = 0;    // latest round that tried to adopt one
  Status taken;                     // result of that round
  Worker worker;

  void total(std::uint64_t /*bytes*/) override {}
  void advance(std::uint64_t bytes) override { bytes_written += bytes; }
  void phase(std::string_view /*what*/) override {}
  bool cancelled() const override { return worker.ending(); }

  Result<std::vector<VersionId>> unsaved(VersionId from, std::size_t count_max) const {
    return store.use([&](Store& lent) -> Result<std::vector<VersionId>> {
      WEFT_TRY(const auto snapshot, lent.snapshot());
      return snapshot->unsaved(from, count_max);
    });
  }
  Result<std::vector<VersionId>> all_unsaved() const {
    return store.use([](Store& lent) { return all_ids(lent, &Snapshot::unsaved); });
  }
  Result<bool> is_unsaved(VersionId version) const {
    return store.use([&](Store& lent) -> Result<bool> {
      WEFT_TRY(const auto snapshot, lent.snapshot());
      return lists_version(*snapshot, &Snapshot::unsaved, version);
    });
  }

  Result<std::string> cluster() const {
    return store.use([&](Store& lent) -> Result<std::string> {
      if (lent.cluster()) return lent.cluster()->cluster;
      return Error{Errc::unreachable, "etcd has not answered yet: this node does not know its cluster"};
    });
  }

  // Opens the store's origin. A store without an origin adopts the one in the directory, or creates it there.
  Result<OriginDir> origin() {
    WEFT_TRY(const std::string cluster, this->cluster());
    WEFT_TRY(const std::string known, store.use([&](Store&) { return ledger.origin(); }));
    if (!known.empty()) return OriginDir::open_known(origin_path, known, cluster);
    WEFT_TRY(OriginDir dir, OriginDir::open(origin_path, cluster));
    return take(std::move(dir));
  }

  // Adopts the origin in the directory, unless all callers have stopped waiting because the directory answered late.
  Result<OriginDir> new_origin() {
    WEFT_TRY(const std::string cluster, this->cluster());
    WEFT_TRY(OriginDir dir, OriginDir::open(origin_path, cluster));
    if (!is_asked_for_new()) return Error{Errc::cancelled, "no other origin was taken"};
    return take(std::move(dir));
  }
  bool is_asked_for_new() {
    const std::lock_guard lock(mutex);
    return takers > 0;
  }

  Result<OriginDir> take(OriginDir dir) {
    WEFT_CHECK(store.use([&](Store&) { return ledger.set_origin(dir.uuid()); }));
    log_info("origin {} is {} from now on", origin_path, printable(dir.uuid()));
    const std::lock_guard lock(mutex);
    replicated.reset();
    untried = 0;
    searched_for.clear();
    return dir;
  }

  void begin_round() {
    std::uint64_t number = 0;
    bool take = false;
    {
      const std::lock_guard lock(mutex);
      number = ++rounds;
      take = std::exchange(take_new, false);
    }
    if (!take) return;
    const auto dir = new_origin();
    const std::lock_guard lock(mutex);
    taken = dir.ok() ? Status() : Status(dir.error());
    taken_round = number;
    changed.notify_all();
  }

  struct Round {
    std::set<VersionId> waited_for;  // versions that callers wait for, tried in this round
    VersionId again = 0;             // next version to retry after a failure in an earlier round
    VersionId end = 0;               // all versions to retry are below this
    bool reached = true;             // the origin could be opened
  };

  // Returns the sequence of the list of freed files that the registry has announced for this origin.
  Result<std::uint64_t> announced(const OriginDir& origin) const {
    if (!latest_collection) return std::uint64_t{0};
    WEFT_TRY(const OriginCollection latest,
             store.use([&](Store&) { return Result<OriginCollection>(latest_collection()); }));
    return latest.origin == origin.uuid() ? latest.sequence : std::uint64_t{0};
  }

  // The version's row was read before, so a list that was announced before the publish is known here. A list that is
  // announced meanwhile matters only if the version was removed and undeleted since.
  Status stage(OriginDir& origin, const VersionRow& row) {
    for (;;) {
      WEFT_TRY(const std::uint64_t before, announced(origin));
      if (before != 0) WEFT_CHECK(origin.know_freed(before));
      WEFT_CHECK(stage_version(store, origin, row, *this, searched_for, gate.get()));
      WEFT_TRY(const std::uint64_t after, announced(origin));
      if (after <= origin.freed().sequence) return {};
    }
  }

  Status save(VersionId version, Round& round) {
    WEFT_TRY(const VersionRow row, store.use([&](Store& lent) -> Result<VersionRow> {
      WEFT_TRY(const auto snapshot, lent.snapshot());
      return snapshot->version(version);
    }));
    if (!row.removed) {
      {
        const std::lock_guard lock(mutex);
        active = fmt::format("{}@{}", row.model_name, row.number);
      }
      auto origin = this->origin();
      round.reached = origin.ok();
      if (!origin.ok()) return origin.error();
      WEFT_CHECK(stage(*origin, row));
    }
    return store.use([&](Store&) { return ledger.saved(std::span(&version, 1)); });
  }

  // Returns the next version to save: one that a caller waits for, else one not tried yet, else one that failed in an
  // earlier round and may fail again forever.
  Result<std::optional<VersionId>> next(Round& round) {
    while (const auto waited_for = next_waited_for(round)) {
      WEFT_TRY(const bool waits, is_unsaved(*waited_for));
      if (waits) return waited_for;
    }
    WEFT_TRY(const auto fresh, unsaved(untried, 1));
    if (!fresh.empty()) {
      untried = fresh.front() + 1;
      return std::optional(fresh.front());
    }
    WEFT_TRY(const auto failed, unsaved(round.again, 1));
    if (failed.empty() || failed.front() >= round.end) return std::optional<VersionId>();
    round.again = failed.front() + 1;
    return std::optional(failed.front());
  }

  std::optional<VersionId> next_waited_for(Round& round) {
    const std::lock_guard lock(mutex);
    for (const VersionId version : first)
      if (round.waited_for.insert(version).second) return version;
    return {};
  }

  // Tries to save each unsaved version once. Returns the first failure, and goes on after it: other versions may
  // succeed.
  Status round() {
    Status worst;
    const auto note = [&worst](const Status& done) {
      if (worst.ok()) worst = done;
    };
    Round round{{}, 0, untried, true};
    for (std::size_t tried = 1; !worker.ending(); ++tried) {
      WEFT_TRY(const auto version, next(round));
      if (!version) return worst;
      note(save_and_count(*version, round));
      if (!round.reached) return worst;  // other versions would fail as well
      if (tried % kSavesBetweenTelling == 0) note(tell());
    }
    return {};
  }

  Status save_and_count(VersionId version, Round& round) {
    const Status done = save(version, round);
    const std::lock_guard lock(mutex);
    active.clear();
    if (!done.ok() && done.error().code == Errc::absent)
      lost[version] = {rounds, done.error().message};
    else
      lost.erase(version);
    if (done.ok())
      ++saved;
    else
      problem = done.error().message;
    changed.notify_all();
    return done;
  }

  Result<std::uint64_t> journal_end() const {
    return store.use([](Store& lent) -> Result<std::uint64_t> {
      WEFT_TRY(const auto snapshot, lent.snapshot());
      return snapshot->journal_end();
    });
  }
  std::optional<std::uint64_t> replicated_so_far() {
    const std::lock_guard lock(mutex);
    return replicated;
  }

  // Writes all catalog events that this node knows, its own and those of other nodes, to the origin's journal. A
  // record's name is derived from its content, so a record that another node wrote first exists already.
  Status tell() {
    WEFT_TRY(const std::uint64_t end, journal_end());
    std::optional<std::uint64_t> from = replicated_so_far();
    if (from == end || (end == 0 && !cluster().ok())) return {};
    WEFT_TRY(const OriginDir origin, this->origin());
    if (!from) {
      WEFT_TRY(from, store.use([&](Store&) { return ledger.replicated(origin.uuid()); }));
      set_replicated(*from, 0);
    }
    while (*from != end && !worker.ending()) {
      WEFT_TRY(from, tell_some(origin, *from));
      if (*from > end) return {};  // new events arrived meanwhile
    }
    return {};
  }

  Result<std::uint64_t> tell_some(const OriginDir& origin, std::uint64_t from) {
    WEFT_TRY(const CatalogEvents batch, store.use([&](Store&) { return ledger.events(from); }));
    for (const CatalogEvent& one : batch.events) {
      if (worker.ending()) return Error{Errc::cancelled, "the daemon ends"};
      WEFT_CHECK(origin.put_event(one, origin.cluster()));
    }
    if (!batch.events.empty())
      WEFT_CHECK(store.use([&](Store&) { return ledger.set_replicated(origin.uuid(), batch.end); }));
    set_replicated(batch.end, batch.events.size());
    return batch.end;
  }

  void set_replicated(std::uint64_t end, std::uint64_t new_records) {
    const std::lock_guard lock(mutex);
    replicated = end;
    records += new_records;
    changed.notify_all();
  }

  // One round of the worker.
  Result<Worker::Pause> work() {
    begin_round();
    Status done = round();
    if (const Status written = tell(); done.ok()) done = written;
    if (worker.ending()) return Worker::kUntilWoken;
    record_outcome(done);
    WEFT_CHECK(done);
    const auto more = unsaved(0, 1);
    return more.ok() && !more->empty() ? Worker::Pause(0) : kPauseMax;
  }

  Error not_yet() const {  // call with the mutex held
    return Error{Errc::cancelled, problem.empty() ? "not at the origin yet" : "not at the origin yet: " + problem};
  }

  void record_outcome(const Status& done) {
    const std::lock_guard lock(mutex);
    problem = done.ok() ? "" : done.error().message;
    if (!done.ok() && done.error().code == Errc::changed) refused_round = rounds;
    changed.notify_all();
  }

  std::uint64_t rounds_so_far() {
    const std::lock_guard lock(mutex);
    return rounds;
  }

  // Waits until `is_done`. A failure that only an administrator can repair ends the wait at once: an unknown origin,
  // seen by a round that began after `asked`, or an error of `failure`, which is called with the mutex held.
  Status wait_until(std::uint64_t asked, const std::function<Result<bool>()>& is_done,
                    const std::function<Status()>& failure, const std::function<bool()>& cancelled) {
    std::unique_lock lock(mutex);
    for (bool waits = false;; waits = true) {
      lock.unlock();
      WEFT_TRY(const bool done, is_done());
      if (done) return {};
      const bool ends = cancelled();
      lock.lock();
      if (refused_round > asked) return Error{Errc::changed, problem};
      WEFT_CHECK(failure());
      if (ends || worker.ending()) return not_yet();
      if (!waits) worker.wake();
      changed.wait_for(lock, kTick);
    }
  }

  Status wait_for(std::uint64_t asked, VersionId version, const std::function<bool()>& cancelled) {
    const auto is_saved = [&]() -> Result<bool> {
      WEFT_TRY(const bool unsaved, is_unsaved(version));
      return !unsaved;
    };
    const auto is_lost = [&]() -> Status {
      const auto at = lost.find(version);
      if (at == lost.end() || at->second.round <= asked) return {};
      return Error{Errc::absent, at->second.why};
    };
    {
      const std::lock_guard lock(mutex);
      first.insert(version);
    }
    const Status waited = wait_until(asked, is_saved, is_lost, cancelled);
    const std::lock_guard lock(mutex);
    first.erase(first.find(version));
    return waited;
  }
};

WriteBehind::WriteBehind(Store& store, OriginLedger& ledger, std::string origin_path, LatestCollection collection,
                         const TimeSource& time, std::shared_ptr<PaceGate> gate)
    : state_(std::make_shared<State>(store, ledger, std::move(origin_path), std::move(collection), time,
                                     std::move(gate))) {
  state_->worker.start([state = state_] { return state->work(); });
}

WriteBehind::~WriteBehind() {
  if (!state_->worker.end_within(kEndWait))
    log_warning("the origin does not answer: the remaining versions are written after the next start");
  state_->store.revoke();
}

void WriteBehind::wake() {
  state_->worker.wake();
}

Status WriteBehind::wait_for(VersionId version, const std::function<bool()>& cancelled) {
  return state_->wait_for(state_->rounds_so_far(), version, cancelled);
}

Status WriteBehind::wait(const std::function<bool()>& cancelled) {
  WEFT_TRY(const auto versions, state_->all_unsaved());
  const std::uint64_t asked = state_->rounds_so_far();
  std::vector<std::string> lost;
  for (const VersionId version : versions) {
    Status waited = state_->wait_for(asked, version, cancelled);
    if (waited.ok()) continue;
    if (waited.error().code != Errc::absent) return waited;
    lost.push_back(std::move(waited).error().message);
  }
  WEFT_TRY(const std::uint64_t end, state_->journal_end());
  const auto is_told = [&]() -> Result<bool> {
    const auto replicated = state_->replicated_so_far();
    return replicated && *replicated >= end;
  };
  WEFT_CHECK(state_->wait_until(
      asked, is_told, [] { return Status(); }, cancelled));
  if (lost.empty()) return {};
  return Error{Errc::absent, lost.size() == 1
                                 ? lost.front()
                                 : fmt::format("{}; {} more versions lack bytes too", lost.front(), lost.size() - 1)};
}

Status WriteBehind::take_new_origin(const std::function<bool()>& cancelled) {
  std::unique_lock lock(state_->mutex);
  const std::uint64_t asked = state_->rounds;
  state_->take_new = true;
  ++state_->takers;
  state_->worker.wake();
  const auto is_taken = [&] { return state_->taken_round > asked; };
  while (!is_taken() && !cancelled() && !state_->worker.ending()) state_->changed.wait_for(lock, kTick);
  if (--state_->takers == 0) state_->take_new = false;
  return is_taken() ? state_->taken : Error{Errc::cancelled, "no other origin was taken"};
}

WriteBehindStatus WriteBehind::status() const {
  WriteBehindStatus status;
  if (const auto versions = state_->all_unsaved(); versions.ok()) status.waiting = versions->size();
  const std::lock_guard lock(state_->mutex);
  status.active = state_->active;
  status.bytes_written = state_->bytes_written;
  status.versions_saved = state_->saved;
  status.records_written = state_->records;
  status.problem = state_->problem;
  return status;
}

}  // namespace weft

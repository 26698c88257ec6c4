// What moves bytes: threads that take units, ask sources, and write what verified.
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sys.h"
#include "node/fetcher_impl.h"

namespace weft {
namespace {

// A source that did not answer is asked after the others for so long.
constexpr auto kRest = std::chrono::seconds(5);
constexpr auto kPauseMin = std::chrono::milliseconds(10);  // before a manifest that is not there is asked for again
constexpr auto kPauseMax = std::chrono::milliseconds(640);

bool was_silent(const Error& error) {
  return error.code == Errc::timed_out || error.code == Errc::unreachable;
}

}  // namespace

std::vector<Fetcher::Source*> Fetcher::ranked() {
  std::vector<Source*> order;
  for (const auto& source : sources_) order.push_back(source.get());
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  std::stable_partition(order.begin(), order.end(), [now](const Source* one) { return one->rests_until <= now; });
  return order;
}

void Fetcher::count(Source& source, std::uint64_t bytes, const Error* failure) {
  const std::lock_guard lock(mutex_);
  ++source.count.reads;
  source.count.bytes += bytes;
  if (failure == nullptr) {
    source.rests_until = {};
    return;
  }
  ++source.count.failures;
  problem_ = failure->message;
  if (was_silent(*failure)) source.rests_until = Clock::now() + kRest;
}

// The first answer that verifies; else what the last source said. Waiters are more patient than all sources together.
template <class T>
Result<T> Fetcher::from_any(const std::function<Result<T>(VerifiedSource&, Deadline)>& ask) {
  Error last{Errc::unreachable, "there is nobody to ask for bytes that are not here"};
  const auto each = options_.patience * 8 / 10 / std::max<std::size_t>(1, sources_.size());
  for (Source* source : ranked()) {
    auto got = ask(source->source, Clock::now() + each);
    if (got.ok()) return got;
    count(*source, 0, &got.error());
    if (last.code == Errc::unreachable || got.error().code != Errc::not_found) last = got.error();
  }
  log_warning("{}", last.message);
  return last;
}

// A version is known by name before its publisher has taken it to the sources: who looks at once waits for that.
Result<std::vector<std::byte>> Fetcher::await_manifest(const Digest& digest) {
  const auto until = Clock::now() + options_.patience;
  for (auto pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
    auto bytes = from_any<std::vector<std::byte>>(
        [&](VerifiedSource& source, Deadline deadline) { return source.manifest(digest, deadline); });
    if (bytes.ok() || bytes.error().code != Errc::not_found || Clock::now() + pause >= until) return bytes;
    std::unique_lock lock(mutex_);
    if (ending_) return bytes;
    arrived_.wait_for(lock, pause);
  }
}

Status Fetcher::fetch_manifest(VersionId version) {
  VersionRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const bool bare, snapshot->is_bare(version));
    if (!bare) return {};
    WEFT_TRY(row, snapshot->version(version));
  }
  WEFT_TRY(auto bytes, await_manifest(row.manifest));
  const Adoption adoption{row.model_name, row.number, std::move(bytes)};
  WEFT_CHECK(store_.adopt(std::span(&adoption, 1)));
  const std::lock_guard lock(mutex_);
  ++manifests_;
  return {};
}

std::optional<Fetcher::Task> Fetcher::next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !wanted_.empty() || !ahead_.empty(); });
    if (ending_) return {};
    std::deque<Task>& queue = wanted_.empty() ? ahead_ : wanted_;
    Task task = std::move(queue.front());
    queue.pop_front();
    if (task.transfer->state(task.unit) != UnitState::queued) continue;  // it was asked for twice
    task.transfer->begin(task.unit);
    return task;
  }
}

Result<std::vector<Digest>> Fetcher::move(const Task& task) {
  const Transfer& transfer = *task.transfer;
  const FetchUnit& unit = transfer.plan.units[task.unit];
  WEFT_CHECK(make_room(unit.length));
  std::vector<ChunkRun> runs;
  for (const FetchUnit::Part& part : unit.parts) runs.push_back(part.run);
  Source* gave = nullptr;
  WEFT_TRY(VerifiedBytes got, from_any<VerifiedBytes>([&](VerifiedSource& source, Deadline deadline) {
             for (const auto& one : sources_)
               if (&one->source == &source) gave = one.get();
             return source.read(transfer.manifest, runs, deadline);
           }));
  WEFT_CHECK(write_exact(transfer.pack->fd(), unit.offset, got.bytes.bytes(), "a pack of fetched bytes"));
  count(*gave, got.bytes.size, nullptr);
  return std::move(got.digests);
}

void Fetcher::work() {
  while (auto task = next()) {
    const auto begun = Clock::now();
    auto digests = move(*task);
    {
      const std::lock_guard lock(mutex_);
      if (digests.ok()) rate_.arrived(task->transfer->plan.units[task->unit].length, begun, Clock::now());
      if (digests.ok())
        task->transfer->arrive(task->unit, *digests);
      else
        task->transfer->fail(task->unit, digests.error());
    }
    arrived_.notify_all();
    keeper_.notify_one();
  }
}

FetchStatus Fetcher::status() const {
  const std::lock_guard lock(mutex_);
  FetchStatus status;
  for (const auto& source : sources_) status.sources.push_back(source->count);
  status.transfers = transfers_.size();
  status.waiting = wanted_.size() + ahead_.size();
  status.manifests = manifests_;
  status.problem = problem_;
  return status;
}

}  // namespace weft

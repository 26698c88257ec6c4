// Ranks the sources: the cheapest first, in the order of the constructor, unless another turns out to be much faster.
#include <algorithm>
#include <utility>

#include "fetch/fetcher_impl.h"

namespace weft {
namespace {

// A source that did not answer is asked last for this time.
constexpr auto kRest = std::chrono::seconds(5);
constexpr double kMuchFaster = 2;               // times the rate of a cheaper source
constexpr double kWorthAsking = 0.25;           // of the rate of a busy cheaper source
constexpr std::uint64_t kTryBytes = 1U << 20U;  // a read of this size measures a source's rate

}  // namespace

// True if a cheaper source gives way to a ready one: that one is much faster, or the cheaper one is busy and less than
// four times as fast.
bool Fetcher::gives_way(const Source& cheaper, Readiness readiness, const Source& other) {
  const double rate = cheaper.rate.bytes_per_s();
  const double others = other.rate.bytes_per_s();
  if (rate == 0 || others == 0) return false;
  return others > rate * (readiness == Readiness::ready ? kMuchFaster : kWorthAsking);
}

// Returns the sources in the order to ask them. Sources that recently did not answer, or probably lack the bytes, come
// last.
std::vector<Fetcher::Source*> Fetcher::ranked(const Digest& manifest, std::span<const ChunkRun> runs) {
  std::vector<std::pair<Source*, Readiness>> order;
  std::uint64_t bytes = 0;
  for (const ChunkRun& run : runs) bytes += run.length();
  for (const auto& source : sources_)
    order.emplace_back(source.get(), source->source.unverified().readiness(manifest, runs));
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  std::stable_partition(order.begin(), order.end(), [](const auto& one) { return one.second != Readiness::lacking; });
  std::stable_partition(order.begin(), order.end(), [now](const auto& one) { return one.first->rests_until <= now; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& [other, readiness] = order[i];
    if (readiness != Readiness::ready || other->rests_until > now) continue;
    const bool tries = bytes >= kTryBytes && other->rate.is_due();
    if (tries || gives_way(*order[0].first, order[0].second, *other)) std::swap(order[0], order[i]);
  }
  std::vector<Source*> out;
  out.reserve(order.size());
  for (const auto& one : order) out.push_back(one.first);
  return out;
}

// Returns the readiness of the source that would be asked first. A unit that equals its base needs no source, and is
// always ready.
Readiness Fetcher::readiness_of(const std::shared_ptr<Transfer>& transfer, std::size_t unit) const {
  if (transfer->is_same(unit)) return Readiness::ready;
  const ChunkRun& run = transfer->plan.units[unit].run;
  const auto now = Clock::now();
  if (transfer->asked_from() > now) return Readiness::busy;
  const Source* busy = nullptr;  // the cheapest source that has the bytes
  for (const auto& source : sources_) {
    if (source->rests_until > now) continue;
    const Readiness readiness = source->source.unverified().readiness(transfer->manifest, std::span(&run, 1));
    if (readiness == Readiness::lacking) continue;
    if (readiness == Readiness::ready && (busy == nullptr || gives_way(*busy, Readiness::busy, *source)))
      return readiness;
    if (busy == nullptr) busy = source.get();
  }
  return busy == nullptr ? Readiness::lacking : Readiness::busy;
}

// Returns the readiness of a unit that no reader waits for. The first unit of a transfer comes alone, so that its
// reader waits for no other bytes, unless its sources have fallen silent. The first unit of a blob with a base comes
// alone too.
Readiness Fetcher::readiness_ahead(const Task& task) const {
  const auto first = task.transfer->begins();
  const bool first_comes = first && readiness_of(task.transfer, *first) != Readiness::lacking;
  if (first_comes || task.transfer->awaits_comparison(task.unit)) return Readiness::busy;
  return readiness_of(task.transfer, task.unit);
}

void Fetcher::begin_read(Source& source) {
  const MutexLock lock(mutex_);
  source.rate.begin();
  for (const auto& other : sources_)
    if (other.get() != &source) other->rate.passed_over();
}

void Fetcher::end_read(Source& source, std::uint64_t bytes, Clock::duration took) {
  const MutexLock lock(mutex_);
  source.rate.end(bytes, took);
}

void Fetcher::count(Source& source, std::uint64_t bytes, const Error* failure) {
  const MutexLock lock(mutex_);
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

}  // namespace weft

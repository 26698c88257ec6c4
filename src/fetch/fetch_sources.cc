#include "fetch/fetch_sources.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "fetch/source_rate.h"
#include "pace/pace_gate.h"

namespace weft {
namespace {

// A source that did not answer is asked last for this time.
constexpr auto kRest = std::chrono::seconds(5);
constexpr double kMuchFaster = 2;               // times the rate of a cheaper source
constexpr double kWorthAsking = 0.25;           // of the rate of a busy cheaper source
constexpr std::uint64_t kTryBytes = 1U << 20U;  // a read of this size measures a source's rate
constexpr auto kWaitMin = std::chrono::milliseconds(500);

// True if a cheaper source gives way to a ready one: that one is much faster, or the cheaper one is busy and less than
// four times as fast. Rates in bytes/s; 0: unknown.
bool gives_way(double cheaper, Readiness readiness, double other) {
  if (cheaper == 0 || other == 0) return false;
  return other > cheaper * (readiness == Readiness::ready ? kMuchFaster : kWorthAsking);
}

}  // namespace

// FetchSources::mutex_ guards all but `source`, `number` and `count.name`.
struct FetchSources::Source {
  Source(std::shared_ptr<BlobSource> from, std::size_t of) : source(std::move(from)), number(of) {
    count.name = source.name();
  }
  VerifiedSource source;
  const std::size_t number;
  SourceCount count;
  SourceRate rate;
  Clock::time_point rests_until{};  // asked last until then, after a silence
};

FetchSources::FetchSources(const std::vector<std::shared_ptr<BlobSource>>& sources, Clock::duration patience,
                           const TimeSource& time)
    : patience_(patience), time_(time) {
  for (const auto& source : sources) sources_.push_back(std::make_unique<Source>(source, sources_.size()));
}

FetchSources::~FetchSources() = default;

// Sources that recently did not answer, or probably lack the bytes, come last.
std::vector<FetchSources::Source*> FetchSources::ranked(const Digest& manifest, std::span<const ChunkRun> runs) const {
  std::vector<std::pair<Source*, Readiness>> order;
  std::uint64_t bytes = 0;
  for (const ChunkRun& run : runs) bytes += run.length();
  for (const auto& source : sources_)
    order.emplace_back(source.get(), source->source.unverified().readiness(manifest, runs));
  const MutexLock lock(mutex_);
  const auto now = time_.now();
  std::stable_partition(order.begin(), order.end(), [](const auto& one) { return one.second != Readiness::lacking; });
  std::stable_partition(order.begin(), order.end(), [now](const auto& one) { return one.first->rests_until <= now; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& [other, readiness] = order[i];
    if (readiness != Readiness::ready || other->rests_until > now) continue;
    const bool tries = bytes >= kTryBytes && other->rate.is_due();
    if (tries || gives_way(order[0].first->rate.bytes_per_s(), order[0].second, other->rate.bytes_per_s()))
      std::swap(order[0], order[i]);
  }
  std::vector<Source*> out;
  out.reserve(order.size());
  for (const auto& one : order) out.push_back(one.first);
  return out;
}

template <class T>
Result<T> FetchSources::from_any(const Request& request, const std::function<Result<T>(Source&, Deadline)>& ask) {
  std::optional<Error> last;
  std::optional<Error> lacking;
  const auto left = std::clamp<Clock::duration>(request.until - Clock::now(), kWaitMin, patience_);
  const auto each = left / static_cast<int>(std::max<std::size_t>(1, sources_.size()));
  for (Source* source : ranked(request.manifest, request.runs)) {
    auto got = ask(*source, Clock::now() + each);
    if (got.ok() || got.error().code == Errc::cancelled) return got;
    const bool lacks = got.error().code == Errc::not_found;
    count(*source, 0, request.young && lacks ? nullptr : &got.error());
    if (lacks) lacking = got.error();
    if (!last || last->code == Errc::unreachable || !lacks) last = got.error();
  }
  if (request.young && lacking) return *std::move(lacking);
  if (!last) last = Error{Errc::unreachable, "no source is available for bytes that are not on this node"};
  log_warning("{}: {}", request.aid.subject, last->message);
  return *std::move(last);
}

Result<FetchSources::Given> FetchSources::read_from(Source& source, Request& request, Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    source.rate.begin();
    for (const auto& other : sources_)
      if (other.get() != &source) other->rate.passed_over();
  }
  const auto begun = time_.now();
  const auto held = request.aid.held;
  auto got = source.source.read(request.manifest, request.runs, deadline, request.aid);
  const auto took = time_.now() - begun;
  {
    const MutexLock lock(mutex_);
    source.rate.end(got.ok() ? got->bytes.size : 0, time_of_source(took, request.aid.held - held));
  }
  if (!got.ok()) return std::move(got).error();
  return Given{std::move(got).value(), source.number, source.count.name};
}

Result<FetchSources::Given> FetchSources::read(Request& request) {
  return from_any<Given>(request,
                         [&](Source& source, Deadline deadline) { return read_from(source, request, deadline); });
}

Result<std::vector<std::byte>> FetchSources::manifest(const VersionRow& version, bool young) {
  Request request{version.manifest, {}, {}, young};
  request.aid.subject = fmt::format("{}@{}", version.model_name, version.number);
  return from_any<std::vector<std::byte>>(
      request, [&](Source& source, Deadline deadline) { return source.source.manifest(version.manifest, deadline); });
}

Result<FetchSources::Given> FetchSources::read_offered(Request& request, const std::shared_ptr<OfferedUnit>& unit) {
  const bool by_name = unit->by_name();
  const auto reads = [by_name](const auto& one) {
    const BlobSource& source = one->source.unverified();
    return by_name ? source.reads_named() : source.reads_offers();
  };
  const auto source = std::ranges::find_if(sources_, reads);
  if (source == sources_.end()) return Error{Errc::unsupported, "no source reads offered units"};
  if (!by_name) request.aid.offered = unit;
  return read_from(**source, request, Clock::now() + patience_);
}

void FetchSources::taken(const Given& given) {
  count(*sources_[given.source], given.read.bytes.size, nullptr);
}

void FetchSources::count(Source& source, std::uint64_t bytes, const Error* failure) {
  const MutexLock lock(mutex_);
  ++source.count.reads;
  source.count.bytes += bytes;
  if (failure == nullptr) {
    source.rests_until = {};
    return;
  }
  ++source.count.failures;
  problem_ = failure->message;
  if (was_silent(*failure)) source.rests_until = time_.now() + kRest;
}

FetchSources::Figures FetchSources::figures_of(const Source& source) const {
  const MutexLock lock(mutex_);
  return {source.rate.bytes_per_s(), source.rests_until > time_.now()};
}

Readiness FetchSources::readiness(const Digest& manifest, const ChunkRun& run) const {
  std::optional<double> busy;  // the rate of the cheapest source that has the bytes
  for (const auto& source : sources_) {
    const Figures figures = figures_of(*source);
    if (figures.rests) continue;
    const Readiness readiness = source->source.unverified().readiness(manifest, std::span(&run, 1));
    if (readiness == Readiness::lacking) continue;
    if (readiness == Readiness::ready && (!busy || gives_way(*busy, Readiness::busy, figures.bytes_per_s)))
      return readiness;
    if (!busy) busy = figures.bytes_per_s;
  }
  return busy ? Readiness::busy : Readiness::lacking;
}

bool FetchSources::codes() const {
  return std::ranges::any_of(sources_, [](const auto& one) { return one->source.unverified().codes(); });
}

VerifiedSource::Proof FetchSources::known_proof(const ContentId& id) const {
  for (const auto& source : sources_)
    if (auto proof = source->source.known_proof(id)) return proof;
  return nullptr;
}

void FetchSources::expect(const VersionRow& version, std::span<const ContentId> blobs) const {
  for (const auto& source : sources_) source->source.unverified().expect(version, blobs);
}

void FetchSources::arrived(const Digest& manifest, std::span<const ChunkRun> runs) const {
  for (const auto& source : sources_) source->source.unverified().arrived(manifest, runs);
}

void FetchSources::evicted() const {
  for (const auto& source : sources_) source->source.unverified().evicted();
}

std::vector<SourceCount> FetchSources::counts() const {
  const MutexLock lock(mutex_);
  std::vector<SourceCount> out;
  for (const auto& source : sources_) out.push_back(source->count);
  return out;
}

std::string FetchSources::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

void FetchSources::note_problem(const std::string& problem) {
  const MutexLock lock(mutex_);
  problem_ = problem;
}

}  // namespace weft

#include "fetch/fetch_sources.h"

#include <doctest/doctest.h>

#include <atomic>

#include "away.h"
#include "fakes/manual_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// A source that can fall silent. Each read takes `pause` of the test's clock.
class NamedSource final : public TwinsReads {
 public:
  NamedSource(std::shared_ptr<TwinSource> twin, std::string name, ManualTime& time)
      : TwinsReads(std::move(twin)), name_(std::move(name)), time_(time) {}
  std::string_view name() const override { return name_; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    ++reads;
    time_.pass(pause);
    if (silent) return Error{Errc::timed_out, "named: silent"};
    return twin_->read(manifest, runs, deadline, aid);
  }
  Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) override { return ready; }
  std::atomic<int> reads = 0;
  std::atomic<bool> silent = false;
  std::chrono::milliseconds pause = 10ms;
  std::atomic<Readiness> ready = Readiness::ready;

 private:
  const std::string name_;
  ManualTime& time_;
};

// Two sources with one blob: a cheap one and another one.
struct TwoSources {
  ManualTime time;
  std::shared_ptr<TwinSource> twin = std::make_shared<TwinSource>();
  std::shared_ptr<NamedSource> cheap = std::make_shared<NamedSource>(twin, "cheap", time);
  std::shared_ptr<NamedSource> other = std::make_shared<NamedSource>(twin, "other", time);
  ChunkRun run;
  FetchSources sources{{cheap, other}, 1s, time};

  explicit TwoSources(std::uint64_t bytes) {
    auto blob = random_bytes(bytes, 1);
    run.id = {blob.size(), tree_sha256(blob)};
    run.count = chunk_count(bytes);
    twin->put(run.id, std::move(blob));
  }
  // Returns the name of the source that gave the blob, or the error's message.
  std::string read(bool young = false) {
    const Digest manifest{};
    FetchSources::Request request{manifest, std::span(&run, 1), {}, young};
    const auto given = sources.read(request);
    if (!given.ok()) return given.error().message;
    sources.taken(*given);
    return std::string(given->name);
  }
  // Reads until the rate of the other source is known.
  void measure() {
    for (int i = 0; i < 200 && other->reads == 0; ++i) read();
    REQUIRE(other->reads == 1);
  }
};

}  // namespace

TEST_CASE("a source that falls silent rests, and the next source is asked alone") {
  TwoSources two(300);
  CHECK(two.read() == "cheap");
  two.cheap->silent = true;
  CHECK(two.read() == "other");
  CHECK(two.read() == "other");
  CHECK(two.cheap->reads == 2);
  const auto counts = two.sources.counts();
  CHECK(counts[0].reads == 2);
  CHECK(counts[0].failures == 1);
  CHECK(counts[1].bytes == 600);
  CHECK(two.sources.problem() == "named: silent");
  two.other->ready = Readiness::lacking;
  CHECK(two.sources.readiness({}, two.run) == Readiness::lacking);
  two.cheap->silent = false;
  two.time.pass(5s);
  CHECK(two.sources.readiness({}, two.run) == Readiness::ready);
  CHECK(two.read() == "cheap");
}

TEST_CASE("a source that turns out to be much faster is asked first") {
  TwoSources two(1U << 20U);
  two.cheap->pause = 50ms;
  two.measure();
  CHECK(two.read() == "other");
  two.cheap->ready = Readiness::busy;
  CHECK(two.sources.readiness({}, two.run) == Readiness::ready);
}

TEST_CASE("a source that turns out to be slower, or not much faster, is asked after a cheaper one") {
  TwoSources two(1U << 20U);
  two.cheap->pause = 50ms;
  two.other->pause = 30ms;
  SUBCASE("not much faster") {}
  SUBCASE("slower") {
    two.other->pause = 500ms;
  }
  two.measure();
  for (int i = 0; i < 20; ++i) CHECK(two.read() == "cheap");
}

TEST_CASE("a source that lacks bytes of a young version has not failed, and hides the errors of others") {
  TwoSources two(300);
  two.twin->lose(two.run.id);
  two.cheap->silent = true;
  CHECK(two.read(true) == "twin: no such blob");
  CHECK(two.sources.counts()[0].failures == 1);
  CHECK(two.sources.counts()[1].failures == 0);
  CHECK(two.read(false) == "named: silent");
  CHECK(two.sources.counts()[1].failures == 1);
}

}  // namespace weft::testing

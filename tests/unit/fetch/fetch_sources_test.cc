#include "fetch/fetch_sources.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "away.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// A source that can fall silent, or pause before each read.
class NamedSource final : public TwinsReads {
 public:
  NamedSource(std::shared_ptr<TwinSource> twin, std::string name)
      : TwinsReads(std::move(twin)), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    ++reads;
    std::this_thread::sleep_for(pause.load());
    if (silent) return Error{Errc::timed_out, "named: silent"};
    return twin_->read(manifest, runs, deadline, aid);
  }
  Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) override { return ready; }
  std::atomic<int> reads = 0;
  std::atomic<bool> silent = false;
  std::atomic<std::chrono::milliseconds> pause = 0ms;
  std::atomic<Readiness> ready = Readiness::ready;

 private:
  const std::string name_;
};

// Two sources with one blob: a cheap one and another one.
struct TwoSources {
  std::shared_ptr<TwinSource> twin = std::make_shared<TwinSource>();
  std::shared_ptr<NamedSource> cheap = std::make_shared<NamedSource>(twin, "cheap");
  std::shared_ptr<NamedSource> other = std::make_shared<NamedSource>(twin, "other");
  ChunkRun run;
  FetchSources sources{{cheap, other}, 1s};

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
}

TEST_CASE("a source that turns out to be much faster is asked first") {
  TwoSources two(1U << 20U);
  two.cheap->pause = 50ms;
  for (int i = 0; i < 18; ++i) two.read();
  CHECK(two.other->reads > 0);
  CHECK(two.read() == "other");
  two.cheap->ready = Readiness::busy;
  CHECK(two.sources.readiness({}, two.run) == Readiness::ready);
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

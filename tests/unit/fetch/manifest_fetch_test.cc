#include "fetch/manifest_fetch.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "away.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// A source that holds its manifest back until open().
class GatedManifest final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "gated"; }
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override {
    ++asked;
    opened_.wait();
    return twin_->manifest(digest, deadline);
  }
  void open() { gate_.set_value(); }
  std::atomic<int> asked = 0;

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
};

struct Resolving {
  Away away{{1000}};
  FetchOptions options;
  FetchSources sources;
  ManifestFetch manifests{away.store, away.store, sources, options};

  explicit Resolving(std::chrono::milliseconds patience)
      : options(with_patience(patience)), sources({away.twin}, patience) {}
  static FetchOptions with_patience(std::chrono::milliseconds patience) {
    FetchOptions options;
    options.patience = patience;
    return options;
  }
  std::uint64_t asked() const { return sources.counts().at(0).reads; }
  std::uint64_t failures() const { return sources.counts().at(0).failures; }
  Status resolve() { return manifests.resolve(away.version); }
};

}  // namespace

TEST_CASE("a resolution that failed fails again at once, until it is worth another") {
  Resolving one(300ms);
  const auto manifest = one.away.twin->lose_manifest();
  std::atomic<bool> there = true;
  one.options.refused = 1h;
  one.options.is_there = [&there](const std::string&) { return there.load(); };
  CHECK(one.resolve().error().code == Errc::absent);
  const auto first = one.asked();
  CHECK(first > 1);  // repeated while the publisher may lack the manifest
  CHECK(one.failures() == 1);
  for (int i = 0; i < 10; ++i) CHECK(one.resolve().error().code == Errc::absent);
  CHECK(one.asked() == first);
  there = false;  // the publisher left: one more attempt, without waiting
  CHECK(one.resolve().error().message.find("is away") != std::string::npos);
  CHECK(one.asked() == first + 1);
  CHECK(one.failures() == 2);
  one.away.twin->put_manifest(manifest.first, manifest.second);
  CHECK(!one.resolve().ok());
  there = true;
  CHECK(one.resolve().ok());
}

TEST_CASE("a failed resolution is retried after a pause") {
  Resolving one(1ms);
  const auto manifest = one.away.twin->lose_manifest();
  one.options.refused = 1ms;
  CHECK(!one.resolve().ok());
  one.away.twin->put_manifest(manifest.first, manifest.second);
  while (!one.resolve().ok()) std::this_thread::sleep_for(1ms);
  CHECK(one.manifests.fetched() == 1);
}

TEST_CASE("callers that resolve one version share one fetch of its manifest") {
  const Away away({1000});
  const auto gated = std::make_shared<GatedManifest>(away.twin);
  CachingStore store;
  const auto manifest = away.twin->lose_manifest();
  away.twin->put_manifest(manifest.first, manifest.second);
  const VersionId version = store.add_version(manifest.first);
  const FetchOptions options;
  FetchSources sources({gated}, options.patience);
  ManifestFetch manifests(store, store, sources, options);
  const auto resolve = [&] { return manifests.resolve(version); };
  auto first = std::async(std::launch::async, resolve);
  while (gated->asked == 0) std::this_thread::sleep_for(1ms);
  auto second = std::async(std::launch::async, resolve);
  CHECK(second.wait_for(50ms) == std::future_status::timeout);
  gated->open();
  CHECK(first.get().ok());
  CHECK(second.get().ok());
  CHECK(gated->asked == 1);
  const auto content = manifests.content(version);
  REQUIRE(content.ok());
  CHECK((*content)->bytes == 1000);
  CHECK(*manifests.content(version) == *content);  // kept
}

TEST_CASE("the end ends the wait for a publisher") {
  Resolving one(1h);
  one.away.twin->lose_manifest();
  auto resolved = std::async(std::launch::async, [&] { return one.resolve(); });
  while (one.asked() == 0) std::this_thread::sleep_for(1ms);
  one.manifests.end();
  CHECK(resolved.get().error().code == Errc::not_found);
}

}  // namespace weft::testing

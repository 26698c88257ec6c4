#include "fuse/state/freshness.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace weft {

TEST_CASE("nothing may be kept before the start and after a stop") {
  Freshness freshness;
  CHECK(freshness.now() == 0);
  CHECK_FALSE(freshness.pass(freshness.now()).keeps());
  freshness.advance();
  const auto looked = freshness.now();
  CHECK(freshness.pass(looked).keeps());
  freshness.stop();
  CHECK_FALSE(freshness.pass(looked).keeps());
  CHECK_FALSE(freshness.pass(freshness.now()).keeps());
  freshness.advance();
  CHECK_FALSE(freshness.pass(looked).keeps());
  CHECK(freshness.pass(freshness.now()).keeps());
}

TEST_CASE("what was looked at before an advance is not kept after it") {
  Freshness freshness;
  freshness.advance();
  const auto looked = freshness.now();
  freshness.advance();
  CHECK_FALSE(freshness.pass(looked).keeps());
}

TEST_CASE("an advance waits for the passes that are out, and for no later ones") {
  Freshness freshness;
  freshness.advance();
  std::optional<Freshness::Pass> pass(freshness.pass(freshness.now()));
  std::atomic<bool> advanced{false};
  std::thread notifier([&] {
    freshness.advance();
    advanced = true;
  });
  while (freshness.now() == 1) std::this_thread::yield();
  const Freshness::Pass later = freshness.pass(freshness.now());
  CHECK(later.keeps());
  CHECK_FALSE(advanced);
  pass.reset();
  notifier.join();
  CHECK(advanced);
}

// A counter stands for the tree, a second one for what the kernel was told it may keep.
TEST_CASE("no old reply is sent after its notification") {
  Freshness freshness;
  std::atomic<std::uint64_t> tree{0};
  std::atomic<std::uint64_t> notified{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<std::uint64_t> kept{0};
  freshness.advance();
  std::vector<std::thread> servers;
  for (int i = 0; i < 3; ++i)
    servers.emplace_back([&] {
      while (!stop) {
        const auto looked = freshness.now();
        const std::uint64_t seen = tree;
        const Freshness::Pass pass = freshness.pass(looked);
        if (!pass.keeps()) continue;
        ++kept;
        if (seen < notified) ++stale;
      }
    });
  for (int i = 0; i < 20'000 || kept == 0; ++i) {
    const std::uint64_t now = ++tree;
    freshness.advance();
    notified = now;
  }
  stop = true;
  for (std::thread& server : servers) server.join();
  CHECK(stale == 0);
  CHECK(kept > 0);
}

}  // namespace weft

#include "fuse/state/notifier.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {

// The kernel's invalidations, in order.
class Forgotten {
 public:
  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }
  // Waits until `wanted` is among the invalidations, and returns all so far.
  std::vector<std::string> wait_for(const std::multiset<std::string>& wanted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      const std::multiset<std::string> all(all_.begin(), all_.end());
      return std::includes(all.begin(), all.end(), wanted.begin(), wanted.end());
    });
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

class FakeCache final : public KernelCache {
 public:
  explicit FakeCache(Forgotten& forgotten) : forgotten_(forgotten) {}
  void expire_name(Ino dir, const std::string& name) override { add("expire " + std::to_string(dir) + " " + name); }
  void forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) override {
    add("pages " + std::to_string(ino) + " " + std::to_string(offset >> 20U) + " " + std::to_string(length));
  }
  int store_pages(std::uint64_t /*node*/, std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) override {
    return 0;
  }

 private:
  void add(std::string what) { forgotten_.add(std::move(what)); }
  Forgotten& forgotten_;
};

struct NotifierFixture {
  void start() { notifier.start(cache); }

  Forgotten forgotten;
  FakeCache cache{forgotten};
  Notifier notifier;
};

}  // namespace

TEST_CASE("requests before and after the start are done by another thread, in order") {
  NotifierFixture f;
  f.notifier.invalidate_entry(7, "early");
  f.start();
  f.forgotten.wait_for({"expire 7 early"});
  f.notifier.drop_pages(8, 5);
  f.notifier.invalidate_entry(9, "late");
  CHECK(f.forgotten.wait_for({"expire 9 late"}) ==
        std::vector<std::string>{"expire 7 early", "pages 8 0 5", "expire 9 late"});
}

TEST_CASE("the pages of a file are dropped in parts, and other requests come between them") {
  NotifierFixture f;
  constexpr std::uint64_t kMiB = 1U << 20U;
  f.notifier.drop_pages(7, 70 * kMiB + 5);
  f.notifier.invalidate_entry(8, "other");
  f.start();
  const std::string last = "pages 7 64 " + std::to_string(6 * kMiB + 5);
  const std::string part = std::to_string(32 * kMiB);
  CHECK(f.forgotten.wait_for({last}) ==
        std::vector<std::string>{"pages 7 0 " + part, "expire 8 other", "pages 7 32 " + part, last});
}

TEST_CASE("many threads may ask, and the notifier stops twice") {
  NotifierFixture f;
  f.start();
  std::multiset<std::string> wanted;
  std::vector<std::thread> threads;
  for (Ino i = 0; i < 4; ++i)
    for (int j = 0; j < 100; ++j) wanted.insert("expire " + std::to_string(i) + " name");
  for (Ino i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 100; ++j) f.notifier.invalidate_entry(i, "name");
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(f.forgotten.wait_for(wanted).size() == 400);
  f.notifier.stop();
  f.notifier.stop();
}

}  // namespace weft

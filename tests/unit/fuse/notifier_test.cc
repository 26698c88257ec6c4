#include "fuse/state/notifier.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fakes/memory_vfs.h"

namespace weft {
namespace {

// What the kernel was made to forget, in order.
class Forgotten {
 public:
  bool knows_epochs = true;

  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }
  // All so far, once these are among it.
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
  void forget_attr(Ino ino) override { add("attr " + std::to_string(ino)); }
  void forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) override {
    add("pages " + std::to_string(ino) + " " + std::to_string(offset >> 20U) + " " + std::to_string(length));
  }
  bool forget_names() override {
    add("all");
    return forgotten_.knows_epochs;
  }

 private:
  void add(std::string what) { forgotten_.add(std::move(what)); }
  Forgotten& forgotten_;
};

struct NotifierFixture {
  void start() { REQUIRE(notifier.start(std::make_unique<FakeCache>(forgotten), told).ok()); }
  void wait_until_kept() {
    while (!freshness.pass(freshness.now()).keeps()) std::this_thread::yield();
  }

  Forgotten forgotten;
  testing::MemoryVfs vfs;
  Freshness freshness;
  std::uint64_t told = 0;
  Notifier notifier{vfs, freshness};
};

}  // namespace

TEST_CASE("what is asked for before and after the start is done by another thread, in order") {
  NotifierFixture f;
  f.notifier.invalidate_entry(7, "early");
  f.start();
  f.forgotten.wait_for({"expire 7 early"});
  f.notifier.invalidate_attr(8);
  f.notifier.invalidate_entry(9, "late");
  CHECK(f.forgotten.wait_for({"expire 9 late"}) ==
        std::vector<std::string>{"expire 7 early", "attr 8", "expire 9 late"});
}

TEST_CASE("the pages of a file are dropped in parts, and what is asked for meanwhile comes between") {
  NotifierFixture f;
  constexpr std::uint64_t kMiB = 1U << 20U;
  f.notifier.drop_pages(7, 70 * kMiB + 5);
  f.notifier.invalidate_attr(8);
  f.start();
  const std::string last = "pages 7 64 " + std::to_string(6 * kMiB + 5);
  const std::string part = std::to_string(32 * kMiB);
  CHECK(f.forgotten.wait_for({last}) ==
        std::vector<std::string>{"pages 7 0 " + part, "attr 8", "pages 7 32 " + part, last});
}

TEST_CASE("many threads may ask, and the notifier stops when told") {
  NotifierFixture f;
  f.start();
  std::multiset<std::string> wanted;
  std::vector<std::thread> threads;
  for (Ino i = 0; i < 4; ++i)
    for (int j = 0; j < 100; ++j) wanted.insert("attr " + std::to_string(i));
  for (Ino i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 100; ++j) f.notifier.invalidate_attr(i);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(f.forgotten.wait_for(wanted).size() == 400);
  f.notifier.stop();
  f.notifier.stop();
}

TEST_CASE("what a commit changed is told twice, and from the first time on older replies are not kept") {
  NotifierFixture f;
  f.vfs.commit({1});  // before the mount: the kernel knows nothing of it
  f.start();
  const auto before = f.freshness.now();
  CHECK(f.freshness.pass(before).keeps());
  f.vfs.commit({20, 21});
  const std::vector<std::string> twice = {"attr 20", "attr 21", "attr 20", "attr 21"};
  CHECK(f.forgotten.wait_for({twice.begin(), twice.end()}) == twice);
  CHECK_FALSE(f.freshness.pass(before).keeps());
  CHECK(f.freshness.pass(f.freshness.now()).keeps());
  CHECK(f.notifier.problem().empty());
}

TEST_CASE("a server that takes over tells what it missed") {
  NotifierFixture f;
  f.vfs.commit({1});
  f.vfs.commit({2});
  f.told = 1 + 1;  // the first was told
  f.start();
  CHECK(f.forgotten.wait_for({"attr 2", "attr 2"}) == std::vector<std::string>{"attr 2", "attr 2"});
  f.notifier.stop();
  CHECK(f.told == 1 + 2);
}

TEST_CASE("where the history was cut off the kernel forgets all names, and is told from there on") {
  NotifierFixture f;
  f.vfs.commit({1});
  f.vfs.forget_history();
  f.told = 1;
  f.start();
  f.forgotten.wait_for({"all"});
  f.wait_until_kept();
  f.vfs.commit({2});
  f.forgotten.wait_for({"attr 2"});
  CHECK(f.notifier.problem().empty());
}

TEST_CASE("a kernel that cannot forget all names is told the whole history, or keeps nothing") {
  NotifierFixture f;
  f.forgotten.knows_epochs = false;
  f.vfs.commit({1});
  f.vfs.forget_history();
  f.told = 1;
  f.start();
  f.forgotten.wait_for({"all", "all"});  // at the first look, and at the next
  CHECK_FALSE(f.freshness.pass(f.freshness.now()).keeps());
  f.notifier.stop();
  CHECK_FALSE(f.notifier.problem().empty());
}

}  // namespace weft

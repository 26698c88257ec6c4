#include "notifier.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {

// What the kernel was made to forget, in order.
class Forgotten {
 public:
  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_.size() >= count; });
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
  void expire_name(Ino dir, const std::string& name) override { add("expire", dir, name); }
  void forget_name(Ino dir, const std::string& name) override { add("forget", dir, name); }
  void forget_attr(Ino ino) override { add("attr", ino, ""); }
  void forget_content(Ino ino) override { add("content", ino, ""); }

 private:
  void add(const std::string& what, Ino ino, const std::string& name) {
    forgotten_.add(what + " " + std::to_string(ino) + " " + name);
  }
  Forgotten& forgotten_;
};

}  // namespace

TEST_CASE("what is asked for before and after the start is done, in order, by another thread") {
  Forgotten forgotten;
  Notifier notifier;
  notifier.invalidate_entry(7, "early");
  REQUIRE(notifier.start(std::make_unique<FakeCache>(forgotten)).ok());
  CHECK(forgotten.wait_for(1) == std::vector<std::string>{"expire 7 early"});
  notifier.invalidate_attr(8);
  notifier.invalidate_entry(9, "late");
  CHECK(forgotten.wait_for(3) == std::vector<std::string>{"expire 7 early", "attr 8 ", "expire 9 late"});
}

TEST_CASE("many threads may ask, and the notifier stops when told") {
  Forgotten forgotten;
  Notifier notifier;
  REQUIRE(notifier.start(std::make_unique<FakeCache>(forgotten)).ok());
  std::vector<std::thread> threads;
  for (Ino i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 100; ++j) notifier.invalidate_attr(i);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(forgotten.wait_for(400).size() == 400);
  notifier.stop();
  notifier.stop();
}

}  // namespace weft

#include "base/bounded_calls.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace weft {
namespace {

using namespace std::chrono_literals;

// Blocks callers until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    wake_.notify_all();
    wake_.wait(lock, [this] { return open_; });
  }
  int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  int waiting_ = 0;
  bool open_ = false;
};

std::function<Result<int>()> through(const std::shared_ptr<Gate>& gate) {
  return [gate] {
    gate->pass();
    return Result<int>(1);
  };
}

// Leaves one more hanging call. A call that no thread picked up before its deadline is repeated.
void hang(BoundedCalls& calls, const std::shared_ptr<Gate>& gate) {
  const int before = gate->waiting();
  while (gate->waiting() == before)
    CHECK(calls.call<int>(through(gate), deadline_in(200ms)).error().code == Errc::timed_out);
}

}  // namespace

TEST_CASE("a bounded call returns what its job does, value or error") {
  BoundedCalls calls("disk", 2);
  CHECK(calls.call<int>([] { return Result<int>(7); }, deadline_in(10s)).value() == 7);
  const auto failed = calls.call<int>([] { return Result<int>(Error{Errc::io, "broken"}); }, deadline_in(10s));
  REQUIRE(!failed.ok());
  CHECK(failed.error().code == Errc::io);
}

TEST_CASE("a hanging call is abandoned and does not block others; if all hang, the next call fails at once") {
  const auto gate = std::make_shared<Gate>();
  BoundedCalls calls("disk", 2);
  hang(calls, gate);
  CHECK(calls.call<int>([] { return Result<int>(7); }, deadline_in(10s)).value() == 7);
  hang(calls, gate);
  const auto refused = calls.call<int>([] { return Result<int>(7); }, deadline_in(1h));
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Errc::timed_out);
  CHECK(refused.error().message.find("not been answered") != std::string::npos);
  gate->open();
  auto again = calls.call<int>([] { return Result<int>(7); }, deadline_in(10s));
  while (!again.ok()) again = calls.call<int>([] { return Result<int>(7); }, deadline_in(10s));
  CHECK(again.value() == 7);
}

TEST_CASE("bounded calls can be destroyed while a job hangs") {
  const auto gate = std::make_shared<Gate>();
  {
    BoundedCalls calls("disk", 1);
    CHECK(!calls.call<int>(through(gate), deadline_in(10ms)).ok());
  }
  gate->open();
}

TEST_CASE("many callers share few threads") {
  BoundedCalls calls("disk", 3);
  std::atomic<int> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) sum += calls.call<int>([] { return Result<int>(1); }, deadline_in(60s)).value();
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 1600);
}

}  // namespace weft

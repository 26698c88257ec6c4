#include "peers/upload_slots.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "testing.h"

namespace weft::testing {
namespace {

using Upload = std::shared_ptr<const void>;

std::vector<Upload> uploads(UploadSlots& slots, std::string_view node, std::size_t count) {
  std::vector<Upload> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(slots.begin(node, Traffic::ahead, true));
  return out;
}

// Returns the order in which calls that began to wait one after the other get the only free slot; nothing if one of
// them may have waited for kWaits, and therefore no longer waits its turn.
std::optional<std::vector<std::size_t>> order_of(const std::vector<Traffic>& calls) {
  UploadSlots slots;
  auto others = uploads(slots, "one", UploadSlots::kAtOnceMax);
  const auto begin = UploadSlots::Clock::now();
  const auto in_time = [begin] { return UploadSlots::Clock::now() < begin + UploadSlots::kWaits; };
  std::mutex mutex;
  std::vector<std::size_t> order;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    threads.emplace_back([&, i] {
      const Upload upload = slots.begin("two", calls[i], true);
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    while (slots.waiting() <= i && in_time()) std::this_thread::yield();
  }
  others.pop_back();
  for (std::thread& thread : threads) thread.join();
  return in_time() ? std::optional(order) : std::nullopt;
}

}  // namespace

TEST_CASE("a single peer never waits, and neither does a call that cannot wait") {
  UploadSlots slots;
  const auto own = uploads(slots, "one", 3 * UploadSlots::kAtOnceMax);
  for (const Upload& upload : own) CHECK(upload);
  CHECK(slots.begin("two", Traffic::foreground, false));
}

TEST_CASE("a call that can wait gets a slot when an upload ends, in turn") {
  UploadSlots slots;
  auto others = uploads(slots, "one", UploadSlots::kAtOnceMax);
  const auto begin = UploadSlots::Clock::now();
  std::atomic<bool> given = false;
  std::thread waiter([&] {
    const Upload upload = slots.begin("two", Traffic::ahead, true);
    given = upload != nullptr;
  });
  while (slots.waiting() == 0 && UploadSlots::Clock::now() < begin + UploadSlots::kWaits) std::this_thread::yield();
  CHECK_FALSE(given);
  others.pop_back();
  waiter.join();
  CHECK(given);
  CHECK(slots.waiting() == 0);
}

TEST_CASE("waiting calls are bounded in number and in time") {
  UploadSlots slots;
  const auto others = uploads(slots, "one", UploadSlots::kAtOnceMax);
  std::atomic<std::size_t> given = 0;
  std::atomic<std::size_t> refused = 0;
  std::vector<std::thread> waiters;
  for (std::size_t i = 0; i < 2 * UploadSlots::kWaitingMax; ++i)
    waiters.emplace_back([&] { ++(slots.begin("two", Traffic::ahead, true) ? given : refused); });
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(given >= UploadSlots::kWaitingMax);
  CHECK(given + refused == 2 * UploadSlots::kWaitingMax);
  CHECK(slots.waiting() == 0);
}

TEST_CASE("calls of readers come before calls ahead of them, and each class in the order of arrival") {
  using enum Traffic;
  std::optional<std::vector<std::size_t>> order;
  for (int tries = 0; tries < 20 && !order; ++tries) order = order_of({ahead, ahead, foreground, foreground});
  REQUIRE_MESSAGE(order, "the machine is too slow");
  CHECK(*order == std::vector<std::size_t>{2, 3, 0, 1});
}

TEST_CASE("an upload may outlive the slots") {
  Upload last;
  {
    UploadSlots slots;
    last = slots.begin("one", Traffic::ahead, true);
  }
  CHECK(last.use_count() == 1);
}

}  // namespace weft::testing

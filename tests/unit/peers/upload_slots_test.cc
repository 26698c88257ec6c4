#include "peers/upload_slots.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "testing.h"

namespace weft::testing {
namespace {

using Upload = std::shared_ptr<const void>;

std::vector<Upload> uploads(UploadSlots& slots, std::string_view node, std::size_t count) {
  std::vector<Upload> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(slots.begin(node, true));
  return out;
}

}  // namespace

TEST_CASE("a single peer never waits, and neither does a call that cannot wait") {
  UploadSlots slots;
  const auto own = uploads(slots, "one", 3 * UploadSlots::kAtOnceMax);
  for (const Upload& upload : own) CHECK(upload);
  CHECK(slots.begin("two", false));
}

TEST_CASE("a call that can wait gets a slot when an upload ends, in turn") {
  UploadSlots slots;
  auto others = uploads(slots, "one", UploadSlots::kAtOnceMax);
  const auto begin = UploadSlots::Clock::now();
  std::atomic<bool> given = false;
  std::thread waiter([&] {
    const Upload upload = slots.begin("two", true);
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
    waiters.emplace_back([&] { ++(slots.begin("two", true) ? given : refused); });
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(given >= UploadSlots::kWaitingMax);
  CHECK(given + refused == 2 * UploadSlots::kWaitingMax);
  CHECK(slots.waiting() == 0);
}

TEST_CASE("current uploads count, and an upload may outlive the slots") {
  Upload last;
  {
    UploadSlots slots;
    CHECK_FALSE(slots.is_busy());
    auto some = uploads(slots, "one", UploadSlots::kBusy);
    CHECK(slots.is_busy());
    last = std::move(some.back());
    some.clear();
    CHECK_FALSE(slots.is_busy());
  }
  last.reset();
}

}  // namespace weft::testing

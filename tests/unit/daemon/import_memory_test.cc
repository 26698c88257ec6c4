// Imports run at once as far as their memory allows, and no user takes all of it.
#include "daemon/background/import_memory.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "testing.h"

namespace weft::testing {
namespace {

using Clock = std::chrono::steady_clock;

bool never() {
  return false;
}

// True if the import has to wait.
bool waits(ImportMemory& memory, uid_t user, std::uint64_t bytes) {
  int asked = 0;
  const auto taken = memory.take(user, bytes, [&asked] { return ++asked == 2; });
  return !taken.ok() && taken.error().code == Errc::cancelled;
}

}  // namespace

TEST_CASE("an import waits for memory, and another's end gives it") {
  ImportMemory memory(1000);
  std::optional<ImportMemory::Share> first(must(memory.take(1, 400, never)));
  CHECK(waits(memory, 1, 200));  // more than half for one user
  CHECK_FALSE(waits(memory, 1, 100));
  CHECK_FALSE(waits(memory, 2, 400));
  const ImportMemory::Share other = must(memory.take(2, 400, never));
  CHECK(waits(memory, 3, 300));
  first->set(50);
  CHECK_FALSE(waits(memory, 3, 300));
  first->set(5000);  // it is larger than was thought, and keeps running
  CHECK(waits(memory, 3, 10));
  std::atomic<bool> runs = false;
  std::thread waiting([&] {
    const auto share = memory.take(3, 300, never);
    runs = share.ok();
  });
  first.reset();
  waiting.join();
  CHECK(runs);
}

TEST_CASE("an import larger than all memory for imports runs alone") {
  ImportMemory memory(1000);
  const ImportMemory::Share large = must(memory.take(1, 1U << 20U, never));
  CHECK(waits(memory, 2, 1));
}

TEST_CASE("imports of one user that hang do not stop those of others") {
  ImportMemory memory(1000);
  ImportMemory::Share hangs = must(memory.take(1, 100, never));
  hangs.set(1U << 20U);
  const auto begun = Clock::now();
  const ImportMemory::Share other = must(memory.take(2, 500, never));
  CHECK(Clock::now() - begun < std::chrono::seconds(30));
  CHECK(waits(memory, 2, 500));
}

}  // namespace weft::testing

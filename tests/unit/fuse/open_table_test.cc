#include "fuse/process/open_table.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "fuse/process/shared_state.h"
#include "testing.h"

namespace weft {
namespace {

SharedState make_state() {
  auto state = SharedState::make();
  REQUIRE(state.ok());
  return std::move(state).value();
}

OpenTable table_of(const SharedState& state) {
  return {state.head().opens, state.slots()};
}

// All fields follow from the handle, so that a half-written record is noticed.
OpenRecord record_of(std::uint64_t handle) {
  const auto way = static_cast<ReadWay>(handle % 3);
  return {handle,
          handle * 7 + 1,
          way,
          static_cast<std::int32_t>(handle % 1000),
          {handle + 1, handle + 2},
          static_cast<uid_t>(handle % 77)};
}

void check_record(const OpenRecord& record) {
  const OpenRecord expected = record_of(record.handle);
  CHECK(record.ino == expected.ino);
  CHECK(record.way == expected.way);
  CHECK(record.backing_id == expected.backing_id);
  CHECK(record.versions == expected.versions);
  CHECK(record.user == expected.user);
}

// Opens and closes handles for ever, and stores the last one in `last_added`.
[[noreturn]] void churn(const SharedState& state, std::uint64_t first, std::atomic<std::uint64_t>& last_added) {
  OpenTable table = table_of(state);
  std::mt19937_64 random(first);
  std::vector<std::uint64_t> open;
  for (const OpenRecord& record : table.records()) open.push_back(record.handle);
  for (std::uint64_t handle = first;; ++handle) {
    if (!table.add(record_of(handle))) ::_exit(3);
    last_added = handle;
    open.push_back(handle);
    while (open.size() >= 50) {
      std::swap(open[random() % open.size()], open.back());
      if (random() % 2 == 0)
        table.remove(open.back());
      else
        table.finish(table.retire(open.back()));
      open.pop_back();
    }
  }
}

}  // namespace

TEST_CASE("a table gives back what was added, and a new server finds it") {
  const SharedState state = make_state();
  OpenTable table = table_of(state);
  for (std::uint64_t handle = 2; handle < 200; handle += 2) REQUIRE(table.add(record_of(handle)));
  table.remove(100);
  table.remove(101);  // not in the table: no effect
  CHECK(table.size() == 98);
  CHECK_FALSE(table.find(100).has_value());
  const OpenTable next = table_of(state);
  CHECK(next.size() == 98);
  for (const OpenRecord& record : next.records()) check_record(record);
  CHECK(next.find(198)->ino == record_of(198).ino);
}

TEST_CASE("the position of an event reader survives the server, also if it is killed while it writes the position") {
  const SharedState state = make_state();
  {
    OpenTable table = table_of(state);
    REQUIRE(table.add(record_of(3)));
    CHECK_FALSE(table.place(3));
    table.set_place(3, StreamSlot::kNoPlace, {0, 100});
    table.set_place(3, 0, {0, 110});  // skips records without text
    CHECK(table.place(3)->position == 110);
    table.set_place(3, 0, {50, 200});
    CHECK(table.place(3, 0)->position == 110);  // the kernel resends this read
    CHECK(table.place(3, 49)->position == 110);
    CHECK(table.place(3, 50)->position == 200);
    table.set_place(3, 0, {60, 210});  // the same read, with more lines
    CHECK(table.place(3, 59)->position == 110);
    CHECK(table.place(3, 60)->position == 210);
    table.set_place(3, 60, {90, 300});
    CHECK_FALSE(table.place(3, 59));
    table.set_poll_handle(3, 17);
  }
  OpenTable next = table_of(state);
  CHECK(next.place(3)->offset == 90);
  CHECK(next.place(3)->position == 300);
  CHECK(next.place(3, 60)->position == 210);
  CHECK(next.poll_handle(3) == 17);
  state.slots()[0].places[0].offset = StreamSlot::kNoPlace;  // killed while it wrote one of the two places
  CHECK(next.place(3));
  next.remove(3);
  REQUIRE(next.add(record_of(5)));
  CHECK_FALSE(next.place(5));
  CHECK(next.poll_handle(5) == 0);
}

TEST_CASE("the next server closes the backing ids that a killed server retired") {
  const SharedState state = make_state();
  OpenTable table = table_of(state);
  REQUIRE(table.add({4, 9, ReadWay::passthrough, 17, {}}));
  REQUIRE(table.add({6, 11, ReadWay::cached, 0, {}}));
  table.retire(4);
  OpenTable next = table_of(state);
  CHECK_FALSE(next.find(4).has_value());
  const auto left = next.retired();
  REQUIRE(left.size() == 1);
  CHECK(left.front().backing_id == 17);
  next.finish(left.front());
  CHECK(table_of(state).retired().empty());
  CHECK(table_of(state).size() == 1);
}

TEST_CASE("a full table refuses, and an empty one gives its memory back") {
  OpenTableHead head{};
  const std::size_t bytes = 256U << 10U;
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(map != MAP_FAILED);
  const std::span<OpenSlot> slots(static_cast<OpenSlot*>(map), bytes / sizeof(OpenSlot));
  OpenTable table(head, slots);
  for (std::uint64_t handle = 1; handle <= slots.size(); ++handle) REQUIRE(table.add(record_of(handle)));
  CHECK_FALSE(table.add(record_of(9999)));
  for (std::uint64_t handle = 1; handle <= slots.size(); ++handle) table.remove(handle);
  CHECK(head.slots_used == 0);
  CHECK(slots[0].handle == 0);  // a fresh page of zeros
  CHECK(table.add(record_of(1)));
  ::munmap(map, bytes);
}

TEST_CASE("a server killed anywhere leaves a whole table") {
  const SharedState state = make_state();
  void* map = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(map != MAP_FAILED);
  auto& last_added = *static_cast<std::atomic<std::uint64_t>*>(map);
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t before = last_added;
    const pid_t child = ::fork();
    if (child == 0) churn(state, before + 2, last_added);
    while (last_added < before + 100) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    OpenTable table = table_of(state);
    CHECK(table.size() >= 49);
    CHECK(table.size() <= 50);
    CHECK(table.retired().size() <= 1);
    for (const OpenRecord& record : table.records()) check_record(record);
    for (const auto& left : table.retired()) table.finish(left);
  }
  ::munmap(map, 4096);
}

TEST_CASE("state of another layout is refused") {
  SharedState state = make_state();
  state.head().layout ^= 1U;
  const auto attached = SharedState::attach(Fd(::dup(state.fd())));
  REQUIRE_FALSE(attached.ok());
  CHECK(attached.error().code == Errc::unsupported);
  state.head().layout ^= 1U;
  CHECK(SharedState::attach(Fd(::dup(state.fd()))).ok());
}

}  // namespace weft

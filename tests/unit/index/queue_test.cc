// The order in which writers get the lock of an index.
#include "index/queue.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/file_lock.h"
#include "test_index.h"

using namespace weft;
using namespace weft::testing;

namespace {

WriterLock lock(const TestIndex& index) {
  return must(Env::lock_writer(index.path, {}));
}

// Waits until a process waits with this ticket.
void await_ticket(const TestIndex& index, std::uint64_t number) {
  const Fd queue = must(open_file(index.path / "queue", O_RDONLY));
  while (!must(excluded(queue.get(), LockKind::exclusive, {number, 1}, "queue"))) std::this_thread::yield();
}

// A process that takes a ticket and keeps it.
class OtherWaiter {
 public:
  explicit OtherWaiter(const TestIndex& index) : pid_(::fork()) {
    if (pid_ != 0) return;
    const auto ticket = QueueTicket::take(index.path, {});
    for (;;) ::pause();
  }
  ~OtherWaiter() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherWaiter(const OtherWaiter&) = delete;
  OtherWaiter& operator=(const OtherWaiter&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

}  // namespace

TEST_CASE("writers get the lock in the order of their requests, the last holder at the end") {
  const TestIndex index;
  std::mutex mutex;
  std::string order;
  const auto write = [&](char name) {
    const WriterLock held = lock(index);
    const std::lock_guard guard(mutex);
    order.push_back(name);
  };
  std::vector<std::thread> others;
  {
    const WriterLock held = lock(index);
    for (const char name : {'a', 'b', 'c', 'd'}) {
      others.emplace_back(write, name);
      await_ticket(index, others.size());
    }
  }
  write('e');  // right after the first lock, as gc does
  for (std::thread& other : others) other.join();
  CHECK(order == "abcde");
}

TEST_CASE("a ticket is behind all that are held, and ends with its process") {
  const TestIndex index;
  QueueTicket first = must(QueueTicket::take(index.path, {}));
  CHECK(first.number() == 1);
  CHECK(must(first.is_first()));
  {
    const OtherWaiter other(index);
    await_ticket(index, 2);
    const QueueTicket third = must(QueueTicket::take(index.path, {}));
    CHECK(third.number() == 3);
    CHECK_FALSE(must(third.is_first()));
    { const QueueTicket gone = std::move(first); }
    CHECK_FALSE(must(third.is_first()));
    ::kill(other.pid(), SIGKILL);
    while (!must(third.is_first())) std::this_thread::yield();
  }
  CHECK(must(QueueTicket::take(index.path, {})).number() == 1);
}

TEST_CASE("a stopped first writer in the queue does not block the others") {
  const TestIndex index;
  const OtherWaiter other(index);
  await_ticket(index, 1);
  const WriterLock held = lock(index);
  const Fd writer = must(open_file(index.path / "writer", O_RDWR));
  CHECK(must(excluded(writer.get(), LockKind::exclusive, {}, "writer")));
}

TEST_CASE("a wait in the queue ends when it is given up, and names who holds the lock") {
  const TestIndex index;
  const WriterLock held = lock(index);
  Patience patience;
  patience.cancelled = [] { return true; };
  const auto given_up = Env::lock_writer(index.path, patience);
  REQUIRE_FALSE(given_up.ok());
  CHECK(given_up.error().code == Errc::cancelled);
  CHECK(given_up.error().message.find("process " + std::to_string(::getpid())) != std::string::npos);
  CHECK(must(QueueTicket::take(index.path, {})).number() == 1);
}

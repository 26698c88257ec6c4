#include "os/fault_guard.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

using namespace weft;

namespace {

// A mapped page past the end of its file.
class PastTheEnd {
 public:
  PastTheEnd() : fd_(::memfd_create("short", 0)), page_(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd_, 0)) {}
  ~PastTheEnd() {
    ::munmap(page_, 4096);
    ::close(fd_);
  }
  void read() const { static_cast<void>(*static_cast<volatile char*>(page_)); }

 private:
  int fd_;
  void* page_;
};

// Reads a page that is not readable. UBSan would report a null pointer.
void wild_read() {
  void* page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static_cast<void>(*static_cast<volatile char*>(page));
}

}  // namespace

TEST_CASE("a fault ends the guarded call, not the process") {
  PastTheEnd page;
  for (int round = 0; round < 100; ++round) {
    bool after = false;
    CHECK_FALSE(survive_faults([&] {
      page.read();
      after = true;
    }));
    CHECK_FALSE(after);
    CHECK(survive_faults([&] { after = true; }));
    CHECK(after);
  }
}

TEST_CASE("guards nest, and an assertion's hook leaves the innermost") {
  PastTheEnd page;
  bool inner = true;
  bool outer = survive_faults([&] {
    inner = survive_faults([] { escape_fault_guard(); });
    page.read();
  });
  CHECK_FALSE(inner);
  CHECK_FALSE(outer);
  escape_fault_guard();  // outside of any guard: no effect
}

TEST_CASE("threads are guarded each for itself") {
  PastTheEnd page;
  std::atomic<int> survived = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        if (!survive_faults([&] { page.read(); }) && survive_faults([] {})) ++survived;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(survived == 800);
}

TEST_CASE("a fault outside of every guard is fatal as before") {
  pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    struct sigaction before {};
    before.sa_handler = [](int) { ::_exit(42); };
    ::sigaction(SIGSEGV, &before, nullptr);
    if (!survive_faults([] {})) ::_exit(1);
    wild_read();
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status));
  // The previous handler gets the signal. If an earlier test's guard installed ours, ours passes it to the handler
  // before it.
  CHECK((WEXITSTATUS(status) == 42 || WIFSIGNALED(status)));
}

// A thread that waits in a page fault, as userfaultfd(2) makes one.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kUserModeOnly = 1;  // UFFD_USER_MODE_ONLY, for ordinary users

// True if the condition comes true within some seconds.
template <class Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

}  // namespace

TEST_CASE("a thread in a page fault is told from one in a system call") {
  const Fd faults(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly)));
  uffdio_api api{UFFD_API, 0, 0};
  if (!faults.valid() || ::ioctl(faults.get(), UFFDIO_API, &api) != 0) {
    MESSAGE("skipped: no userfaultfd(2)");
    return;
  }
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  const auto address = reinterpret_cast<std::uintptr_t>(page);
  uffdio_register area{{address, kPage}, UFFDIO_REGISTER_MODE_MISSING, 0};
  REQUIRE(::ioctl(faults.get(), UFFDIO_REGISTER, &area) == 0);
  std::atomic<pid_t> thread = 0;
  std::atomic<bool> reads = false;
  std::thread reader([&] {
    thread = ::gettid();
    while (!reads) ::usleep(1000);
    static_cast<void>(*static_cast<volatile char*>(page));
  });
  REQUIRE(comes_true([&] { return thread != 0; }));
  CHECK_FALSE(is_in_page_fault(thread));
  reads = true;
  CHECK(comes_true([&] { return is_in_page_fault(thread); }));
  uffdio_zeropage zero{{address, kPage}, 0, 0};
  REQUIRE(::ioctl(faults.get(), UFFDIO_ZEROPAGE, &zero) == 0);
  reader.join();
  CHECK_FALSE(is_in_page_fault(thread));
  ::munmap(page, kPage);
}

}  // namespace weft

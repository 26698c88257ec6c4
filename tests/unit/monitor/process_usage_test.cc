#include "monitor/process_usage.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdint>

#include "os/sys.h"
#include "testing.h"

namespace weft {
namespace {

using testing::must;

constexpr double kSecond = 1e9;  // nanoseconds

TEST_CASE("the process finds itself: its descriptors, its memory and its start") {
  const ProcessUsage before = must(process_usage());
  CHECK(before.start_seconds > 1e9);
  CHECK(before.start_seconds <= static_cast<double>(now_ns()) / kSecond + 1);
  CHECK(before.resident_bytes > 64U << 10U);
  CHECK(before.virtual_bytes >= before.resident_bytes);
  CHECK(before.open_fds >= 1);
  CHECK(before.open_fds <= before.max_fds);
  const Fd one = must(open_file("/dev/null", O_RDONLY));
  const Fd two = must(open_file("/dev/null", O_RDONLY));
  const ProcessUsage after = must(process_usage());
  CHECK(after.open_fds == before.open_fds + 2);
  CHECK(after.start_seconds == before.start_seconds);
}

TEST_CASE("the CPU time of the process grows while it computes") {
  const double before = must(process_usage()).cpu_seconds;
  volatile std::uint64_t sum = 0;
  while (must(process_usage()).cpu_seconds == before)
    for (int i = 0; i < 1'000'000; ++i) sum = sum + 1;
  CHECK(must(process_usage()).cpu_seconds > before);
}

}  // namespace
}  // namespace weft

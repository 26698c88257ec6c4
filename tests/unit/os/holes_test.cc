#include "os/holes.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <random>

#include "os/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Target {
  TempDir directory;
  Fd fd = open_file(directory / "file", O_RDWR | O_CREAT).value();

  Status write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    for (const Range& run : runs_to_write(fd.get(), offset, bytes))
      WEFT_CHECK(write_exact(fd.get(), offset + run.offset, bytes.subspan(run.offset, run.length), "file"));
    return extend_file(fd.get(), offset + bytes.size(), "file");
  }
  std::vector<std::byte> read(std::uint64_t offset, std::size_t count) const {
    std::vector<std::byte> out(count);
    REQUIRE(read_exact(fd.get(), offset, out, "file").ok());
    return out;
  }
};

}  // namespace

TEST_CASE("only whole blocks of zeros, many in a row, are left out") {
  std::vector<std::byte> bytes(1U << 20U);
  CHECK(data_runs(0, bytes).empty());
  CHECK(data_runs(0, {}).empty());
  bytes[300'000] = std::byte{1};
  auto runs = data_runs(0, bytes);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].offset == 300'000 / kHoleBlock * kHoleBlock);
  CHECK(runs[0].length == kHoleBlock);
  bytes[300'000 + kHoleMin / 2] = std::byte{1};  // too close for a hole in between
  CHECK(data_runs(0, bytes).size() == 1);
  runs = data_runs(100, bytes);  // the first and last block are incomplete
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].offset == 0);
  CHECK(runs[0].length == kHoleBlock - 100);
  CHECK(runs[2].length == 100);
  CHECK(data_runs(0, random_bytes(500'000, 1)).size() == 1);
}

TEST_CASE("writes with holes read back equal, also over older bytes") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const Target target;
  std::vector<std::byte> expected;
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t offset = random() % (1U << 20U);
    auto bytes = random_bytes(1 + random() % (1U << 20U), random());
    for (int i = 0; i < 3; ++i) {
      const std::size_t begin = random() % bytes.size();
      const std::size_t end = std::min<std::size_t>(bytes.size(), begin + random() % (400U << 10U));
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end),
                std::byte{0});
    }
    expected.resize(std::max<std::size_t>(expected.size(), offset + bytes.size()));
    std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
    REQUIRE(target.write(offset, bytes).ok());
    CHECK(target.read(0, expected.size()) == expected);
  }
}

TEST_CASE("zeros take no disk, and give the file its length") {
  const Target target;
  REQUIRE(target.write(0, std::vector<std::byte>(16U << 20U)).ok());
  const auto st = stat_fd(target.fd.get(), "file");
  REQUIRE(st.ok());
  CHECK(st->st_size == 16U << 20U);
  CHECK(st->st_blocks == 0);
}

TEST_CASE("the data behind a hole is found, and none behind the last") {
  constexpr std::uint64_t kHole = 1U << 20U;
  const Target target;
  REQUIRE(target.write(kHole, random_bytes(kHoleBlock, 1)).ok());
  const auto from = [&target](std::uint64_t offset) { return must(next_data(target.fd.get(), offset, "file")); };
  CHECK(from(0) == kHole);
  CHECK(from(kHole + 1) == kHole + 1);
  CHECK_FALSE(from(kHole + kHoleBlock));
  CHECK(next_data(-1, 0, "file").error().code == Errc::io);
}

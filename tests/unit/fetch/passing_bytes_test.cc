#include "fetch/passing_bytes.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "os/sys.h"
#include "testing.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunks = 8;

// One blob of kChunks chunks, which pass two at a time.
struct Passing {
  std::vector<std::byte> blob = random_bytes(kChunks * kDigestChunk, 1);
  ContentId id{blob.size(), {}};
  PassingBytes passing{4 * kDigestChunk};

  ChunkRun run(std::uint64_t chunk) const { return {id, chunk, 1}; }
  // Lets chunks `first` and `first` + 1 pass. Returns a client's descriptor of their pack.
  Fd pass(std::uint64_t first) {
    const auto pack = must(passing_pack(std::span(blob).subspan(first * kDigestChunk, 2 * kDigestChunk)));
    const ChunkRun runs[] = {run(first), run(first + 1)};
    passing.put(runs, pack);
    return Fd(::fcntl(pack->fd(), F_DUPFD_CLOEXEC, 0));
  }
  bool has(std::uint64_t chunk) const {
    const auto place = passing.find(run(chunk));
    if (!place) return false;
    std::vector<std::byte> got(kDigestChunk);
    REQUIRE(read_exact(place->pack->fd(), place->offset, got, "a chunk").ok());
    CHECK(std::ranges::equal(got, std::span(blob).subspan(chunk * kDigestChunk, kDigestChunk)));
    CHECK(place->pack->id() == kPassingPack);
    return true;
  }
};

std::uint64_t size_of(const Fd& fd) {
  return static_cast<std::uint64_t>(must(stat_fd(fd.get(), "a pack")).st_size);
}

}  // namespace

TEST_CASE("packs of passing bytes are dropped whole, the oldest first, and clients that keep them hold no memory") {
  Passing test;
  const Fd first = test.pass(0);
  const Fd second = test.pass(2);
  CHECK(test.has(0));
  CHECK(test.has(3));
  const Fd third = test.pass(4);
  CHECK_FALSE(test.has(0));
  CHECK_FALSE(test.has(1));
  CHECK(test.has(3));
  CHECK(test.has(4));
  CHECK(size_of(first) == 0);
  CHECK(size_of(second) == 2 * kDigestChunk);
  test.passing.drop_older(1h);
  CHECK(test.has(4));
  test.passing.drop_older(0s);
  CHECK_FALSE(test.has(4));
  CHECK(size_of(second) == 0);
  CHECK(size_of(third) == 0);
}

TEST_CASE("chunks that pass again are found in their newer pack") {
  Passing test;
  const Fd first = test.pass(0);
  const Fd again = test.pass(1);
  const Fd third = test.pass(4);
  CHECK_FALSE(test.has(0));
  CHECK(test.has(1));
  CHECK(test.has(2));
}

TEST_CASE("a reader in the daemon keeps a dropped pack") {
  Passing test;
  const Fd client = test.pass(0);
  auto place = test.passing.find(test.run(1));
  REQUIRE(place);
  test.passing.drop_older(0s);
  CHECK(size_of(client) == 2 * kDigestChunk);
  place.reset();
  CHECK(size_of(client) == 0);
}

}  // namespace weft::testing

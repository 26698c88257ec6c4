#include "packs/pack_writer.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>

#include <algorithm>

#include "base/sha256.h"
#include "pack_fixture.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Returns how many pages of a file are in the page cache.
std::size_t cached_pages(int fd, std::size_t size) {
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(map != MAP_FAILED);
  std::vector<unsigned char> pages((size + kPackBlock - 1) / kPackBlock);
  REQUIRE(::mincore(map, size, pages.data()) == 0);
  ::munmap(map, size);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1U) != 0; }));
}

// True if O_DIRECT works and bypasses the cache. A tmpfs accepts O_DIRECT, but is its own page cache.
bool can_bypass_cache(const TempDir& dir) {
  struct statfs fs {};
  if (::statfs(dir.path().c_str(), &fs) != 0 || fs.f_type == TMPFS_MAGIC) return false;
  return open_file(dir / "probe", O_WRONLY | O_CREAT | O_DIRECT).ok();
}

}  // namespace

TEST_CASE("a pack that was written past the page cache leaves no stray pages in it") {
  TempDir dir;
  if (!can_bypass_cache(dir)) {
    MESSAGE("not tried: nothing bypasses the page cache here");
    return;
  }
  must(make_directories(dir / "packs"));
  const Bytes bytes = random_bytes((3U << 20U) + 700, 1);
  auto pack = must(PackWriter::create(safe(dir.path()), safe(dir.path())));
  must(pack->write(0, bytes));  // whole blocks bypass the cache, the last 700 bytes do not
  CHECK(cached_pages(pack->fd(), bytes.size()) > 0);
  pack->list({{bytes.size(), tree_sha256(bytes)}, 0, {}});
  must(pack->sync());
  CHECK(cached_pages(pack->fd(), bytes.size()) == 0);
  Bytes back(bytes.size());
  must(read_exact(pack->fd(), 0, back, "pack"));
  CHECK(back == bytes);
}

TEST_CASE("zeros in a pack are holes, at its end too, and the pack reads as what was written") {
  TempDir dir;
  must(make_directories(dir / "packs"));
  Bytes bytes(6U << 20U);
  std::ranges::copy(random_bytes(100'000, 1), bytes.begin() + (2U << 20U) + 700);
  auto pack = must(PackWriter::create(safe(dir.path()), safe(dir.path())));
  must(pack->write(0, bytes));
  pack->list({{bytes.size(), tree_sha256(bytes)}, 0, {}});
  must(pack->sync());
  const auto st = must(stat_fd(pack->fd(), "pack"));
  CHECK(static_cast<std::size_t>(st.st_size) == bytes.size());
  CHECK(st.st_blocks * 512 < 256 << 10);
  Bytes back(bytes.size());
  must(read_exact(pack->fd(), 0, back, "pack"));
  CHECK(back == bytes);
}

TEST_CASE("zeros that take the place of bytes which were given back are written") {
  TempDir dir;
  must(make_directories(dir / "packs"));
  auto pack = must(PackWriter::create(safe(dir.path()), safe(dir.path())));
  const Bytes first = random_bytes(1U << 20U, 1);
  const Bytes zeros(1U << 20U);
  must(pack->write(pack->reserve(first.size(), 0), first));
  pack->give_back(0);
  must(pack->write(pack->reserve(zeros.size(), 0), zeros));
  Bytes back(zeros.size());
  must(read_exact(pack->fd(), 0, back, "pack"));
  CHECK(back == zeros);
}

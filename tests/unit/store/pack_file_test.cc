#include "store/pack_file.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>

#include <algorithm>

#include "base/sha256.h"
#include "pack_fixture.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Pages of a file that are in the page cache.
std::size_t cached_pages(int fd, std::size_t size) {
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(map != MAP_FAILED);
  std::vector<unsigned char> pages((size + kPackBlock - 1) / kPackBlock);
  REQUIRE(::mincore(map, size, pages.data()) == 0);
  ::munmap(map, size);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1U) != 0; }));
}

// A tmpfs takes O_DIRECT, and is its own cache.
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
  auto pack = must(PackWriter::create(dir.path(), dir.path()));
  must(pack->write(0, bytes));  // whole blocks go past the cache, the last 700 bytes do not
  CHECK(cached_pages(pack->fd(), bytes.size()) > 0);
  pack->list({{bytes.size(), tree_sha256(bytes)}, 0, {}});
  must(pack->sync());
  CHECK(cached_pages(pack->fd(), bytes.size()) == 0);
  Bytes back(bytes.size());
  must(read_exact(pack->fd(), 0, back, "pack"));
  CHECK(back == bytes);
}

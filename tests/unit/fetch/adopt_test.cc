// Files that a pull has copied become packs of the cache.
#include "fetch/requests/adopt.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "away.h"
#include "fetch/fetcher.h"
#include "os/safe_path.h"
#include "testing.h"
#include "weft/store/snapshot.h"

namespace weft::testing {
namespace {

constexpr std::size_t kMiB = 1U << 20U;

struct Adopted {
  Away away{{3 * kMiB, 6 * kMiB, 1 * kMiB}};
  TempDir dir;
  Fetcher fetcher{away.store, away.store, {away.twin}, {}};

  std::string path() const { return dir.path() + "/model.bin"; }
  void write(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    std::filesystem::resize_file(path(), away.bytes.size());  // the rest is a hole
  }
  Result<std::uint64_t> adopt(Progress& progress = no_progress()) {
    must(fetcher.resolve(away.version));
    const VersionRow row = must(must(away.store.snapshot())->version(away.version));
    return adopt_files(away.store, away.store, fetcher, row, must(SafePath::open_owned(dir.path())), progress);
  }
  bool has(std::size_t blob) { return must(away.store.snapshot())->find_blob(away.file.extents[blob].id).ok(); }
};

}  // namespace

TEST_CASE("a file that has all bytes becomes a pack as it is") {
  Adopted test;
  test.write(test.away.bytes);
  CHECK(must(test.adopt()) == test.away.bytes.size());
  for (const std::size_t blob : {0, 1, 2}) CHECK(test.has(blob));
  CHECK_FALSE(std::filesystem::exists(test.path()));
  CHECK(test.away.twin->reads() == 0);
  CHECK(must(test.adopt()) == 0);
}

TEST_CASE("blobs whose bytes are wrong or have not come stay absent") {
  Adopted test;
  std::string bytes = test.away.bytes.substr(0, 9 * kMiB);
  bytes[5 * kMiB] ^= 1;
  test.write(bytes);
  CHECK(must(test.adopt()) == 3 * kMiB);
  CHECK(test.has(0));
  CHECK_FALSE(test.has(1));
  CHECK_FALSE(test.has(2));
}

TEST_CASE("a file of another size, a link and a file that is not there are left") {
  Adopted test;
  CHECK(must(test.adopt()) == 0);
  test.write(test.away.bytes);
  std::filesystem::resize_file(test.path(), test.away.bytes.size() - 1);
  CHECK(must(test.adopt()) == 0);
  const std::string other = test.dir.path() + "/other";
  test.write(test.away.bytes);
  std::filesystem::rename(test.path(), other);
  std::filesystem::create_symlink(other, test.path());
  CHECK(must(test.adopt()) == 0);
  CHECK(std::filesystem::exists(other));
}

TEST_CASE("without space nothing is kept, and an interrupt ends the work") {
  Adopted test;
  test.write(test.away.bytes);
  SilentProgress cancelled([] { return true; });
  CHECK(test.adopt(cancelled).error().code == Errc::cancelled);
  CHECK(std::filesystem::exists(test.path()));
  test.away.store.no_room = Error{Errc::no_space, "full"};
  CHECK(must(test.adopt()) == 0);
}

}  // namespace weft::testing

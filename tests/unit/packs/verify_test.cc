#include "diskformat/pack_names.h"
#include "pack_fixture.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kMiB = 1U << 20U;

std::vector<Bytes> parts() {
  return {random_bytes(5000, 1), random_bytes(3 * kMiB + 7, 2), random_bytes(kMiB, 3)};
}

void flip(const std::string& path, std::uint64_t offset) {
  Fd fd = must(open_file(path, O_RDWR));
  Bytes byte(1);
  must(read_exact(fd.get(), offset, byte, path));
  byte[0] ^= std::byte{1};
  must(write_exact(fd.get(), offset, byte, path));
}

}  // namespace

TEST_CASE("fsck reads everything and finds nothing wrong with what is right") {
  PackStore store;
  store.publish(parts());
  FsckReport report = store.fsck();
  CHECK(report.clean());
  CHECK(report.packs == 1);
  CHECK(report.blobs == 3);
  CHECK(report.bytes_read == join(parts()).size());
  CHECK(store.fsck(false).bytes_read == 0);
}

TEST_CASE("fsck finds a flipped byte wherever it is") {
  for (std::uint64_t offset : {0UL, 4999UL, 5000UL, 2 * kMiB, 4 * kMiB + 5006}) {
    PackStore store;
    store.publish(parts());
    flip(pack_path(store.path, must(store.packs->list())[0]), offset);
    FsckReport report = store.fsck();
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].find("differs") != std::string::npos);
    CHECK(report.problems[0].find('\n') == std::string::npos);
    CHECK(store.fsck(false).clean());
  }
}

TEST_CASE("fsck finds a large blob's damage") {
  PackStore store;
  store.publish({random_bytes(66 * kMiB + 3, 1)});
  CHECK(store.fsck().clean());
  flip(pack_path(store.path, must(store.packs->list())[0]), 40 * kMiB);
  CHECK(store.fsck().problems.size() == 1);
}

TEST_CASE("fsck finds a pack that is short, a .toc that is missing, damaged or another's") {
  PackStore store;
  auto ids = store.publish(parts());
  PackId pack = must(store.packs->list())[0];
  const std::string toc = toc_path(store.path, pack);
  std::size_t findings = 1;
  SUBCASE("short") {
    REQUIRE(::truncate(pack_path(store.path, pack).c_str(), kMiB) == 0);
    findings = 2;  // one for each blob past the end
  }
  SUBCASE("missing") {
    must(remove_file(toc));
  }
  SUBCASE("damaged") {
    flip(toc, 100);
  }
  SUBCASE("another's") {
    PackToc other = must(read_toc(toc));
    ++other.pack;
    must(replace_toc(toc, other));
  }
  SUBCASE("root and chunks disagree") {
    PackToc other = must(read_toc(toc));
    other.entries[1].chunks[0].bytes[5] ^= 1;
    must(replace_toc(toc, other));
  }
  SUBCASE("the index lacks what is needed") {
    store.index.forget(ids[1]);
  }
  SUBCASE("the index is wrong") {
    store.index.put(ids[1], {pack, 1});
  }
  FsckReport report = store.fsck(false);
  CHECK(report.problems.size() == findings);
}

TEST_CASE("fsck is content with garbage that gc will take") {
  PackStore store;
  auto ids = store.publish(parts());
  store.index.release(ids);
  CHECK(store.fsck().clean());
  store.index.forget(ids[0]);
  CHECK(store.fsck().clean());
}

TEST_CASE("fsck reports no damage of bytes that nothing reads") {
  PackStore store;
  auto ids = store.publish(parts());
  store.index.release(ids);
  for (const ContentId& id : ids) store.index.forget(id);  // as a publish that was killed before its commit
  flip(pack_path(store.path, must(store.packs->list())[0]), 2 * kMiB);
  const FsckReport report = store.fsck();
  CHECK(report.problems == std::vector<std::string>());
  CHECK(report.damaged.empty());
}

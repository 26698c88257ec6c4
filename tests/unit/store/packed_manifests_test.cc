// gc moves the manifests of small versions into packs.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "index/manifests.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

namespace fs = std::filesystem;

constexpr unsigned kVersions = 40;

Files files_of(unsigned n) {
  return {{2 * n, 2 * n + 1}};
}

struct PackedStore {
  PackedStore() {
    for (unsigned n = 0; n < kVersions; ++n) must_publish(*store, "m", files_of(n));
  }
  std::size_t files_in(const std::string& name) const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(test.path + "/" + name), {}));
  }
  bool reads(unsigned n) const { return store->open_manifest(sha256(manifest_of(files_of(n)))).ok(); }
  bool reads_all(unsigned from = 0) const {
    for (unsigned n = from; n < kVersions; ++n)
      if (!reads(n)) return false;
    return true;
  }
  bool is_sound(bool data = true) const {
    FsckOptions options;
    options.data = data;
    const auto problems = must(store->fsck(options, decode, no_progress())).problems;
    CHECK(problems == std::vector<std::string>{});
    return problems.empty();
  }
  GcReport gc() { return must(store->gc({}, no_progress())); }
  std::string file_of(unsigned n) const { return test.path + "/manifests/" + to_hex(sha256(manifest_of(files_of(n)))); }
  std::vector<fs::path> manifest_packs(const std::string& suffix) const {
    std::vector<fs::path> packs;
    for (const auto& entry : fs::directory_iterator(test.path + "/packs")) {
      const auto pack = pack_of_name(entry.path().filename().string(), suffix);
      if (pack && kind_of_pack(*pack) == PackKind::manifests) packs.push_back(entry.path());
    }
    return packs;
  }
  void reopen() {
    store.reset();
    store = open_store(test.path);
  }
  FsckReport rebuild() {
    store.reset();
    FsckReport report = must(Store::rebuild(test.path, decode, no_progress()));
    store = open_store(test.path);
    return report;
  }

  TestStore test;
  std::unique_ptr<StoreImpl> store = open_store(test.path);
};

}  // namespace

TEST_CASE("gc leaves few files, whatever the number of small versions") {
  PackedStore of;
  CHECK(of.files_in("manifests") == kVersions);
  CHECK(of.files_in("packs") == 2 * kVersions);
  of.gc();
  CHECK(of.files_in("manifests") == 0);
  CHECK(of.files_in("packs") == 5);  // one pack of blobs; one of manifests, with its copy
  CHECK(of.reads_all());
  const std::string after = dump(*of.store, false);
  CHECK(of.is_sound(false));
  CHECK(of.is_sound());
  of.gc();
  CHECK(of.files_in("packs") == 5);
  CHECK(of.rebuild().clean());
  CHECK(of.reads_all());
  CHECK(dump(*of.store, false) == after);
  CHECK(of.is_sound());
  CHECK(must(of.store->gc({}, no_progress())).packs_deleted == 0);
}

TEST_CASE("few manifests stay files") {
  TestStore test;
  auto store = open_store(test.path);
  for (unsigned n = 0; n < 5; ++n) must_publish(*store, "m", files_of(n));
  must(store->gc({}, no_progress()));
  CHECK(std::distance(fs::directory_iterator(test.path + "/manifests"), {}) == 5);
}

TEST_CASE("a removed version gives its manifest back") {
  PackedStore of;
  of.gc();
  for (unsigned n = 0; n < kVersions / 2; ++n) must(of.store->remove_version("m", n + 1));
  CHECK(of.reads_all());  // they stay until gc
  CHECK(of.is_sound());
  const GcReport report = of.gc();
  CHECK(report.versions_reaped == kVersions / 2);
  CHECK(report.packs_compacted == 2);
  CHECK_FALSE(of.reads(0));
  CHECK(of.reads_all(kVersions / 2));
  CHECK(of.is_sound());
  SUBCASE("all of them") {
    for (unsigned n = kVersions / 2; n < kVersions; ++n) must(of.store->remove_version("m", n + 1));
    of.gc();
    CHECK(of.files_in("packs") == 0);
    CHECK(of.files_in("manifests") == 0);
  }
  SUBCASE("and it comes back") {
    must_publish(*of.store, "m", files_of(0));
    CHECK(of.files_in("manifests") == 1);
    CHECK(of.reads(0));
  }
  CHECK(of.is_sound());
}

TEST_CASE("a publish shares a manifest that is in a pack") {
  PackedStore of;
  of.gc();
  must_publish(*of.store, "other", files_of(3));
  CHECK(of.files_in("manifests") == 0);
  must(of.store->remove_version("m", 4));
  of.gc();
  CHECK(of.reads_all());
  CHECK(of.is_sound());
}

// Copies into the store the pack of manifests that a gc would write, as a gc leaves it that dies before it commits.
void copy_later_pack(PackedStore& of) {
  of.store.reset();
  fs::copy(of.test.path, of.test.dir / "other", fs::copy_options::recursive);
  must(open_store(of.test.dir / "other")->gc({}, no_progress()));
  for (const auto& entry : fs::directory_iterator(of.test.dir / "other/packs"))
    if (kind_of_pack(std::stoull(entry.path().stem().string(), nullptr, 16)) == PackKind::manifests)
      fs::copy(entry.path(), of.test.path + "/packs");
  of.reopen();
}

TEST_CASE("a pack of manifests without its copy is sound as long as the index does not name it") {
  PackedStore of;
  copy_later_pack(of);
  fs::remove(of.manifest_packs(".copy").front());
  CHECK(of.is_sound(false));
  CHECK(of.is_sound());
  of.gc();
  CHECK(of.manifest_packs(".pack").size() == 1);
  CHECK(of.manifest_packs(".copy").size() == 1);
  CHECK(of.reads_all());
  CHECK(of.is_sound());
}

TEST_CASE("the next gc completes the work of one that died") {
  PackedStore of;
  SUBCASE("files of manifests that are in a pack") {
    fs::copy(of.test.path + "/manifests", of.test.dir / "saved");
    of.gc();
    fs::copy(of.test.dir / "saved", of.test.path + "/manifests");
  }
  SUBCASE("a pack that the index does not name") {
    copy_later_pack(of);
  }
  CHECK(of.files_in("manifests") == kVersions);
  CHECK(of.is_sound());
  SUBCASE("before a rebuild") {
    CHECK(of.rebuild().clean());
  }
  SUBCASE("as it is") {}
  CHECK(of.reads_all());
  of.gc();
  CHECK(of.files_in("manifests") == 0);
  CHECK(of.manifest_packs(".pack").size() == 1);
  CHECK(of.reads_all());
  CHECK(of.is_sound());
}

TEST_CASE("a gc that is killed at any moment takes no version away") {
  PackedStore of;
  of.store.reset();
  for (unsigned round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = open_store(of.test.path);
      for (unsigned n = 0; n < 4; ++n) must_publish(*store, "more", files_of(1000 + 4 * round + n));
      for (unsigned n = 0; n < 4; ++n) static_cast<void>(store->remove_version("more", 8 * round + n + 1));
      must(store->gc({.all = true}, no_progress()));
      ::_exit(0);
    }
    ::usleep(500 + 1500 * round);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    of.reopen();
    REQUIRE(of.reads_all());
    REQUIRE(of.is_sound());
    of.store.reset();
  }
  of.reopen();
  of.gc();
  CHECK(of.is_sound());
  CHECK(of.rebuild().clean());
  CHECK(of.reads_all());
}

TEST_CASE("a reader finds a manifest while gc moves it") {
  PackedStore of;
  std::atomic<bool> ends{false};
  std::atomic<unsigned> failed{0};
  std::thread reader([&] {
    while (!ends)
      if (!of.reads_all(kVersions / 2)) ++failed;
  });
  for (unsigned n = 0; n < kVersions / 2; ++n) {
    must(of.store->remove_version("m", n + 1));
    if (n % 2 == 0) must(of.store->gc({.all = true}, no_progress()));
  }
  ends = true;
  reader.join();
  CHECK(failed == 0);
}

TEST_CASE("a pack of manifests that lost its table of contents says itself what it holds") {
  PackedStore of;
  of.gc();
  const fs::path toc = of.manifest_packs(".toc").front();
  SUBCASE("gone") {
    fs::remove(toc);
  }
  SUBCASE("damaged") {
    write_file(toc, "no table of contents");
  }
  of.reopen();
  CHECK(of.reads_all());
  CHECK_FALSE(must(of.store->fsck({}, decode, no_progress())).clean());
  fs::remove(of.test.path + "/index/data.mdb");
  const FsckReport report = of.rebuild();
  CHECK(report.problems.empty());
  CHECK(report.rebuilt);
  CHECK(of.reads_all());
  CHECK(of.is_sound());
}

TEST_CASE("one damaged byte in either copy of a pack of manifests is reported, and a rebuild repairs it") {
  PackedStore of;
  const std::string saved = read_text(of.file_of(5));
  of.gc();
  const std::string before = dump(*of.store, false);
  fs::path path = of.manifest_packs(".pack").front();
  const std::string bytes = read_text(path);
  SUBCASE("of the pack") {}
  SUBCASE("of the copy") {
    path = of.manifest_packs(".copy").front();
  }
  REQUIRE(read_text(path) == bytes);
  const std::size_t at = bytes.find(saved);
  REQUIRE(at != std::string::npos);
  // In the header of the record: its checksum, length, kind and version. Then a byte of the manifest.
  for (const std::size_t damaged : {at - 13, at - 7, at - 4, at - 2, at + 9}) {
    CAPTURE(damaged - at);
    std::string other = bytes;
    other[damaged] ^= 4;
    write_file(path, other);
    of.reopen();
    CHECK(of.reads_all());
    CHECK(must(of.store->fsck({.data = true}, decode, no_progress())).problems.size() == 1);
    const FsckReport report = of.rebuild();
    CHECK(report.problems.empty());
    CHECK(report.repaired.size() == 1);
    CHECK(read_text(path) == bytes);
    CHECK(of.reads_all());
    CHECK(of.is_sound());
    CHECK(dump(*of.store, false) == before);
  }
}

TEST_CASE("a pack of manifests of which any file is lost comes back from the others") {
  PackedStore of;
  const std::string saved = read_text(of.file_of(5));
  of.gc();
  const std::string before = dump(*of.store, false);
  const fs::path pack = of.manifest_packs(".pack").front();
  const std::string bytes = read_text(pack);
  const auto lose = [&pack](std::string_view suffix) { fs::remove(fs::path(pack).replace_extension(suffix)); };
  SUBCASE("the pack") {
    lose(".pack");
  }
  SUBCASE("the copy") {
    lose(".copy");
  }
  SUBCASE("the pack and its table of contents") {
    lose(".pack");
    lose(".toc");
  }
  SUBCASE("the copy and the table of contents") {
    lose(".copy");
    lose(".toc");
  }
  SUBCASE("the end of the pack and the beginning of the copy") {
    const std::size_t cut = bytes.find(saved) - 16;  // between two records
    write_file(pack, bytes.substr(0, cut));
    write_file(fs::path(pack).replace_extension(".copy"), std::string(cut, '0') + bytes.substr(cut));
  }
  of.reopen();
  CHECK_FALSE(must(of.store->fsck({}, decode, no_progress())).clean());
  of.gc();  // it removes nothing that the rebuild needs
  const FsckReport report = of.rebuild();
  CHECK(report.problems.empty());
  CHECK_FALSE(report.repaired.empty());
  CHECK(of.manifest_packs(".pack").size() == 1);
  CHECK(read_text(pack) == bytes);
  CHECK(read_text(of.manifest_packs(".copy").front()) == bytes);
  CHECK(of.reads_all());
  CHECK(of.is_sound());
  CHECK(dump(*of.store, false) == before);
}

TEST_CASE("a rebuild keeps what a table of contents lists, though both copies are damaged there") {
  PackedStore of;
  const std::string saved = read_text(of.file_of(5));
  of.gc();
  const fs::path pack = of.manifest_packs(".pack").front();
  const std::string toc = read_text(of.manifest_packs(".toc").front());
  std::string bytes = read_text(pack);
  bytes[bytes.find(saved)] ^= 1;
  write_file(pack, bytes);
  write_file(fs::path(pack).replace_extension(".copy"), bytes);
  const FsckReport report = of.rebuild();
  CHECK_FALSE(report.problems.empty());  // one version has no content
  CHECK(read_text(of.manifest_packs(".toc").front()) == toc);
  CHECK_FALSE(of.reads(5));
  CHECK(of.reads_all(6));
  write_file(of.file_of(5), saved);  // from a backup
  CHECK(of.rebuild().problems.empty());
  CHECK(of.reads_all());
}

TEST_CASE("a damaged manifest in a pack is told of, and its file may be put back") {
  PackedStore of;
  const std::string saved = read_text(of.file_of(5));
  of.gc();
  const fs::path pack = of.manifest_packs(".pack").front();
  std::string bytes = read_text(pack);
  const std::size_t at = bytes.find(saved);
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  write_file(pack, bytes);
  write_file(fs::path(pack).replace_extension(".copy"), bytes);
  CHECK(of.store->open_manifest(sha256(manifest_of(files_of(5)))).error().code == Errc::corrupt);
  CHECK(of.reads(6));
  FsckOptions options;
  options.data = true;
  const FsckReport report = must(of.store->fsck(options, decode, no_progress()));
  CHECK_FALSE(report.problems.empty());
  CHECK(report.damaged.empty());
  write_file(of.file_of(5), saved);
  CHECK(of.reads_all());
  of.gc();
  CHECK(of.reads_all());
}

// Rebuilds from damaged packs, and a damaged index over undamaged packs.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include <fmt/core.h>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index_support.h"
#include "os/sys.h"
#include "packs/import.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

PackId pack_of(StoreImpl& store, unsigned content) {
  return store.snapshot().value()->find_blob(content_id(content)).value().pack;
}

FsckReport rebuild(const std::string& path) {
  return Store::rebuild(path, decode, no_progress()).value();
}

std::string state(const std::string& path) {
  return dump(*Store::open(path, {}).value(), false);
}

bool reads(StoreImpl& store, unsigned content) {
  auto place = store.open_blob(content_id(content));
  if (!place.ok()) return false;
  std::vector<std::byte> bytes(content_id(content).length);
  return read_exact(place->pack->fd(), place->offset, bytes, "pack").ok() && bytes == content_bytes(content);
}

void put_place(StoreImpl& store, unsigned content, const BlobPlace& place) {
  WriterLock lock = store.parts().index.lock().value();
  const ContentId id = content_id(content);
  must(store.parts().index.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
    if (blob) return place_blob(txn, *blob, place);
    auto made = make_blob(txn, id, place);
    return made.ok() ? Status{} : Status{std::move(made).error()};
  }));
}

// Imports and publishes m@1 again: one file of the contents 1 and 2.
PublishOutcome import_again(TestStore& test, StoreImpl& store) {
  auto import = store.begin_import(Durability::local).value();
  std::vector<std::byte> bytes = content_bytes(1);
  const std::vector<std::byte> second = content_bytes(2);
  bytes.insert(bytes.end(), second.begin(), second.end());
  write_file(test.dir / "source", as_text(bytes));
  Fd fd = open_file(test.dir / "source", O_RDONLY).value();
  const std::vector<Range> ranges = {{0, content_id(1).length}, {content_id(1).length, content_id(2).length}};
  REQUIRE(import->add(fd.get(), "source", ranges, no_progress()).ok());
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of({{1, 2}});
  request.content = make_content({{1, 2}});
  return import->publish(request).value();
}

void flip(const std::string& path, std::uint64_t offset) {
  std::string bytes = read_text(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
  write_file(path, bytes);
}

// Returns the bytes of packs, tables of contents and manifests, by path.
std::map<std::string, std::string> files_of(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const char* directory : {"/packs", "/manifests"})
    for (const auto& entry : std::filesystem::directory_iterator(path + directory))
      if (entry.is_regular_file()) files[entry.path().string()] = read_text(entry.path().string());
  return files;
}

// Holds a lease on a file, so that non-blocking opens of it fail.
class Unopenable {
 public:
  explicit Unopenable(const std::string& path) : lease_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    ::signal(SIGIO, SIG_IGN);  // requests the release of the lease
    REQUIRE(::fcntl(lease_.get(), F_SETLEASE, F_WRLCK) == 0);
  }

 private:
  Fd lease_;
};

// Flips the low bit of the byte in the middle of a blob.
void damage_blob(StoreImpl& store, const std::string& path, unsigned content) {
  const BlobPlace place = store.snapshot().value()->find_blob(content_id(content)).value();
  std::string bytes = read_text(pack_path(path, place.pack));
  char& byte = bytes[place.offset + content_id(content).length / 2];
  byte = static_cast<char>(byte ^ 1);
  write_file(pack_path(path, place.pack), bytes);
}

}  // namespace

TEST_CASE("a rebuild that cannot open a file just now ends with an error and changes nothing") {
  TestStore test;
  std::string toc, manifest;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2}, {3}});
    manifest = test.path + "/manifests/" + to_hex(must_publish(*store, "n", {{2, 4}}).version.manifest);
    toc = toc_path(test.path, pack_of(*store, 2));
  }
  const std::string before = state(test.path);
  for (const std::string& file : {toc, manifest}) {
    CAPTURE(file);
    const auto files = files_of(test.path);
    {
      Unopenable hidden(file);
      CHECK_FALSE(Store::rebuild(test.path, decode, no_progress(), {true, {}}).ok());
    }
    CHECK(files_of(test.path) == files);
    CHECK(rebuild(test.path).clean());
    CHECK(state(test.path) == before);
  }
}

TEST_CASE("a rebuild that runs out of descriptors at any point changes nothing") {
  TestStore test;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2}, {3}});
    must_publish(*store, "n", {{2, 4}});
  }
  const std::string before = state(test.path);
  unsigned failures = 0;
  for (rlim_t descriptors = 3; descriptors < 64; ++descriptors) {
    CAPTURE(descriptors);
    const auto files = files_of(test.path);
    const int status = in_child([&] {
      const rlimit limit{descriptors, descriptors};
      if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
      auto report = Store::rebuild(test.path, decode, no_progress(), {true, {}});
      if (!report.ok()) ::_exit(3);
      return report->clean();
    });
    if (exited(status)) break;
    REQUIRE(exited(status, 3));
    ++failures;
    CHECK(files_of(test.path) == files);
    CHECK(state(test.path) == before);
  }
  CHECK(failures > 3);
  CHECK(state(test.path) == before);
}

TEST_CASE("a table of contents that cannot be recovered whole is replaced only with accept_loss, and kept") {
  TestStore test;
  PackId pack = 0;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2, 3}});
    pack = pack_of(*store, 2);
    damage_blob(*store, test.path, 2);
  }
  std::filesystem::remove_all(test.path + "/index");
  write_file(toc_path(test.path, pack), "damaged");
  FsckReport refused = rebuild(test.path);
  CHECK(refused.refused);
  REQUIRE(refused.problems.size() == 1);
  CHECK(refused.problems[0].find("m@1: 1 of its blobs") != std::string::npos);
  CHECK(read_text(toc_path(test.path, pack)) == "damaged");
  CHECK(Store::rebuild(test.path, decode, no_progress(), {true, {}}).value().rebuilt);
  CHECK(read_text(lost_toc_path(test.path, pack)) == "damaged");
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  CHECK(reads(*store, 3));
  CHECK(store->open_blob(content_id(2)).error().code == Errc::absent);
}

TEST_CASE("a pack without its table of contents is searched for what versions need") {
  for (bool removed : {true, false}) {
    CAPTURE(removed);
    TestStore test;
    PackId pack = 0;
    std::string before;
    {
      auto store = open_store(test.path);
      must_publish(*store, "m", {{1, 2, 3}, {4}});
      must_publish(*store, "n", {{5, 6}});
      must_publish(*store, "n", {{7}});
      pack = pack_of(*store, 2);
      before = dump(*store, false);
    }
    if (removed) {
      std::filesystem::remove(toc_path(test.path, pack));
    } else {
      write_file(toc_path(test.path, pack), "damaged");
    }
    std::filesystem::remove_all(test.path + "/index");
    FsckReport report = rebuild(test.path);
    CHECK(report.problems == std::vector<std::string>{});
    REQUIRE(report.repaired.size() == 1);
    CHECK(report.repaired[0].find("4 blobs") != std::string::npos);
    CHECK(state(test.path) == before);
    auto store = open_store(test.path);
    for (unsigned n = 1; n <= 7; ++n) CHECK(reads(*store, n));
    CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
  }
}

TEST_CASE("a rebuild finds blobs after unneeded ones") {
  TestStore test;
  PackId pack = 0;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}});
    must_publish(*store, "n", {{1}, {10}});
    REQUIRE(store->remove_version("m", 1).ok());
    pack = pack_of(*store, 1);
  }
  std::filesystem::remove(toc_path(test.path, pack));
  std::filesystem::remove_all(test.path + "/index");
  CHECK(rebuild(test.path).problems == std::vector<std::string>{});
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  CHECK(reads(*store, 10));  // its offset is no multiple of 4096, and unknown bytes precede it
}

namespace {

// Makes a store with removed and derived versions, packs rewritten by gc, and contents shared by files. Returns the
// contents of live versions.
std::set<unsigned> make_history(StoreImpl& store, std::mt19937_64& random) {
  std::map<std::pair<std::string, std::uint64_t>, Files> live;
  unsigned next = 1;
  Files last = {{next++}};
  for (int step = 0; step < 12; ++step) {
    for (auto& file : last)
      for (unsigned& content : file)
        if (random() % 3 == 0) content = next++;
    last.resize(1 + random() % 3);
    for (auto& file : last)
      while (file.size() < 1 + random() % 5)
        file.push_back(random() % 4 == 0 && next > 2 ? 1 + static_cast<unsigned>(random() % (next - 1)) : next++);
    const std::string model = random() % 2 == 0 ? "a" : "b";
    live[{model, must_publish(store, model, last).version.number}] = last;
    if (random() % 3 == 0) {
      const auto gone = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      REQUIRE(store.remove_version(gone->first.first, gone->first.second).ok());
      live.erase(gone);
    }
    if (random() % 4 == 0) REQUIRE(store.gc({}, no_progress()).ok());
  }
  std::set<unsigned> needed;
  for (const auto& [version, files] : live)
    for (const auto& file : files) needed.insert(file.begin(), file.end());
  return needed;
}

// Damages a table of contents. Returns a description of the damage.
std::string damage_toc(const std::string& path, const std::string& other, std::mt19937_64& random) {
  std::string bytes = read_text(path);
  switch (random() % 5) {
    case 0: {
      const unsigned flips = 1 + random() % 8;
      for (unsigned i = 0; i < flips; ++i) {
        char& byte = bytes[random() % bytes.size()];
        byte = static_cast<char>(byte ^ (1U << (random() % 8)));
      }
      write_file(path, bytes);
      return fmt::format("{} bits flipped", flips);
    }
    case 1:
      bytes.resize(random() % bytes.size());
      write_file(path, bytes);
      return "cut";
    case 2: {
      const std::string theirs = read_text(other);
      write_file(path, theirs);
      write_file(other, bytes);
      return "changed places with another";
    }
    case 3:
      std::filesystem::remove(path);
      return "removed";
    default:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size() / 2), bytes.size() / 2, '\0');
      write_file(path, bytes);
      return "half zeroed";
  }
}

}  // namespace

TEST_CASE("every undamaged blob comes back after random damage to tables of contents") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    TestStore test;
    std::set<unsigned> needed;
    std::string before;
    std::vector<std::string> tocs;
    {
      auto store = open_store(test.path);
      needed = make_history(*store, random);
      before = dump(*store, false);
      for (const unsigned content : needed) tocs.push_back(toc_path(test.path, pack_of(*store, content)));
    }
    const std::string damage = damage_toc(tocs[random() % tocs.size()], tocs[random() % tocs.size()], random);
    const bool index_lost = random() % 2 == 0;
    if (index_lost) std::filesystem::remove_all(test.path + "/index");
    CAPTURE(damage);
    CAPTURE(index_lost);
    FsckReport report = rebuild(test.path);
    CHECK(report.rebuilt);
    CHECK(report.problems == std::vector<std::string>{});
    auto store = open_store(test.path);
    for (const unsigned content : needed) CHECK(reads(*store, content));
    CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
  }
}

TEST_CASE("packs that changed places are sorted out, with or without their tables of contents") {
  for (bool tocs : {true, false}) {
    CAPTURE(tocs);
    TestStore test;
    {
      auto store = open_store(test.path);
      must_publish(*store, "m", {{1, 2, 3}});
      must_publish(*store, "n", {{4, 5}});
      const std::string one = pack_path(test.path, pack_of(*store, 1)), two = pack_path(test.path, pack_of(*store, 4));
      std::filesystem::rename(one, test.path + "/away");
      std::filesystem::rename(two, one);
      std::filesystem::rename(test.path + "/away", two);
      if (!tocs) std::filesystem::remove(toc_path(test.path, pack_of(*store, 1)));
    }
    const FsckReport report = rebuild(test.path);
    CHECK(report.rebuilt);
    auto store = open_store(test.path);
    for (unsigned n = 1; n <= 5; ++n) CHECK(reads(*store, n));
    CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
  }
}

TEST_CASE("manifests that changed places are sorted out") {
  TestStore test;
  std::string before;
  {
    auto store = open_store(test.path);
    const std::string one = test.path + "/manifests/" + to_hex(must_publish(*store, "m", {{1, 2}}).version.manifest);
    const std::string two = test.path + "/manifests/" + to_hex(must_publish(*store, "n", {{3}}).version.manifest);
    before = dump(*store, false);
    std::filesystem::rename(one, test.path + "/away");
    std::filesystem::rename(two, one);
    std::filesystem::rename(test.path + "/away", two);
  }
  const FsckReport report = rebuild(test.path);
  CHECK(report.problems == std::vector<std::string>{});
  CHECK(report.repaired.size() == 2);
  CHECK(state(test.path) == before);
}

TEST_CASE("a rebuild uses the intact copy of a blob, and keeps a damaged one listed") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}, {2}});
  const PackId pack = pack_of(*store, 1);
  const std::string intact = read_text(pack_path(test.path, pack));
  PackToc copy = read_toc_of(test.path, pack).value();
  copy.pack = pack + 1;
  REQUIRE(write_toc(toc_path(test.path, copy.pack), copy).ok());
  write_file(pack_path(test.path, copy.pack), intact);
  damage_blob(*store, test.path, 1);
  CHECK(rebuild(test.path).clean());
  CHECK(pack_of(*store, 1) == copy.pack);
  CHECK(reads(*store, 1));
  std::filesystem::remove(pack_path(test.path, copy.pack));
  std::filesystem::remove(toc_path(test.path, copy.pack));
  const FsckReport report = rebuild(test.path);
  CHECK(report.rebuilt);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("is damaged, and no pack has another copy") != std::string::npos);
  CHECK(reads(*store, 2));
}

TEST_CASE("versions that a lost pack hurts are named") {
  TestStore test;
  {
    auto store = open_store(test.path);
    must_publish(*store, "whole", {{1}});
    must_publish(*store, "hurt", {{1, 2}});
    std::filesystem::remove(pack_path(test.path, pack_of(*store, 2)));
  }
  FsckReport report = rebuild(test.path);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("hurt@1: 1 of its blobs") != std::string::npos);
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  CHECK_FALSE(reads(*store, 2));
}

TEST_CASE("a rebuild uses the intact one of two packs with one blob") {
  for (bool cut : {true, false})
    for (PackId other : {PackId{1}, PackId{UINT64_MAX}}) {  // sorted before and after
      CAPTURE(cut);
      CAPTURE(other);
      TestStore test;
      auto store = open_store(test.path);
      must_publish(*store, "m", {{1}});
      PackId pack = pack_of(*store, 1);
      PackToc toc = read_toc_of(test.path, pack).value();
      toc.pack = other;
      REQUIRE(write_toc(toc_path(test.path, other), toc).ok());
      std::string bytes = read_text(pack_path(test.path, pack));
      if (cut) {
        bytes.resize(bytes.size() / 2);
      } else {
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      }
      write_file(pack_path(test.path, other), bytes);
      rebuild(test.path);
      CHECK(pack_of(*store, 1) == pack);
      CHECK(reads(*store, 1));
    }
}

TEST_CASE("a place counts only where the pack lists that blob") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  must_publish(*store, "n", {{3}});
  BlobPlace two = store->snapshot().value()->find_blob(content_id(2)).value();
  for (const BlobPlace& wrong :
       {BlobPlace{two.pack, two.offset}, BlobPlace{two.pack, 5}, BlobPlace{pack_of(*store, 3), 0}}) {
    put_place(*store, 1, wrong);
    auto place = store->open_blob(content_id(1));
    REQUIRE_FALSE(place.ok());
    CHECK(place.error().code == Errc::corrupt);
    CHECK(place.error().message.find("weft fsck --rebuild") != std::string::npos);
    // An import of the same content does not trust such a row either. It corrects the row, although it makes no
    // version.
    CHECK_FALSE(import_again(test, *store).made);
    CHECK(reads(*store, 1));
    CHECK(store->fsck({}, decode, no_progress()).value().clean());
  }
}

TEST_CASE("a row of before a collection names no hole") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2, 3}});
  must_publish(*store, "n", {{3}});
  BlobPlace old = store->snapshot().value()->find_blob(content_id(1)).value();
  REQUIRE(store->remove_version("m", 1).ok());
  REQUIRE(store->gc({}, no_progress()).ok());
  put_place(*store, 1, old);
  CHECK_FALSE(reads(*store, 1));
  CHECK(reads(*store, 3));
}

TEST_CASE("importing the good file again replaces damaged bytes for good") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  const BlobPlace old = store->snapshot().value()->find_blob(content_id(2)).value();
  flip(pack_path(test.path, old.pack), old.offset + 3);
  CHECK_FALSE(reads(*store, 2));
  CHECK_FALSE(import_again(test, *store).made);  // the version exists already
  CHECK(reads(*store, 2));
  CHECK(pack_of(*store, 2) != old.pack);
  CHECK(store->fsck({}, decode, no_progress()).value().clean());
  SUBCASE("a rebuild keeps the good copy") {
    store.reset();
    CHECK(rebuild(test.path).problems.empty());
    store = open_store(test.path);
  }
  SUBCASE("gc frees the damaged one") {
    REQUIRE(store->gc({}, no_progress()).ok());
  }
  CHECK(reads(*store, 1));
  CHECK(reads(*store, 2));
  CHECK(pack_of(*store, 2) != old.pack);
  CHECK(store->fsck({}, decode, no_progress()).value().clean());
}

TEST_CASE("a rebuild brings hints back, and gc takes them with their blobs") {
  TestStore test;
  const auto bytes = random_bytes(3 * kDigestChunk + 5, 1);
  const ContentId id{bytes.size(), tree_sha256(bytes)};
  const std::uint64_t hint = xxh3_64(std::span(bytes).first(kDigestChunk));
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1}});
    auto import = Importer::begin(safe(test.path), store->parts().blobs, {}).value();
    write_file(test.dir / "source", as_text(bytes));
    Fd fd = open_file(test.dir / "source", O_RDONLY).value();
    const Range all{0, bytes.size()};
    REQUIRE(import->add(fd.get(), "source", std::span(&all, 1), no_progress()).ok());
    REQUIRE(import->finish().ok());
  }
  std::filesystem::remove_all(test.path + "/index");
  CHECK(rebuild(test.path).problems.empty());
  auto store = open_store(test.path);
  CHECK(store->parts().blobs.read().value()->hinted(bytes.size(), hint).value() == id);
  CHECK_FALSE(store->parts().blobs.read().value()->hinted(bytes.size() + 1, hint).value());
  CHECK_FALSE(store->parts().blobs.read().value()->hinted(bytes.size(), hint + 1).value());
  REQUIRE(store->gc({}, no_progress()).ok());
  CHECK_FALSE(store->parts().blobs.read().value()->hinted(bytes.size(), hint).value());
}

#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include "base/sha256.h"
#include "pack_fixture.h"
#include "store/hash.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

Bytes part(std::size_t bytes, std::uint64_t seed) {
  return random_bytes(bytes, seed);
}

// Header, tensors that fit a window of 2 MiB, some that do not, odd lengths.
std::vector<Bytes> model(std::uint64_t seed) {
  return {part(3001, seed),     part(700 * kKiB, seed + 1),     part(17, seed + 2),      part(3 * kMiB + 5, seed + 3),
          part(kMiB, seed + 4), part(900 * kKiB + 1, seed + 5), part(5 * kMiB, seed + 6)};
}

ContentId identity(const Bytes& bytes) {
  return {bytes.size(), xxh3_128(bytes), tree_sha256(bytes)};
}

class StopAfter final : public Progress {
 public:
  explicit StopAfter(int polls) : left_(polls) {}
  void total(std::uint64_t) override {}
  void advance(std::uint64_t) override {}
  void phase(std::string_view) override {}
  bool cancelled() const override { return --left_ < 0; }

 private:
  mutable std::atomic<int> left_;
};

class Count final : public Progress {
 public:
  void total(std::uint64_t) override {}
  void advance(std::uint64_t bytes) override { done += bytes; }
  void phase(std::string_view) override {}
  bool cancelled() const override { return false; }
  std::atomic<std::uint64_t> done{0};
};

}  // namespace

TEST_CASE("a new file becomes a pack that equals it") {
  PackStore store;
  auto parts = model(1);
  auto ids = store.publish(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) CHECK(ids[i] == identity(parts[i]));
  CHECK(store.holds(ids, parts));
  CHECK(store.shared_bytes == 0);
  auto packs = must(store.packs->list());
  REQUIRE(packs.size() == 1);
  CHECK(read_text(pack_path(store.path, packs[0])) == as_text(join(parts)));
  CHECK(store.temporaries().empty());
  CHECK(store.fsck().clean());
}

TEST_CASE("what is known is not stored again") {
  for (DigestMode mode : {DigestMode::tree_sha256, DigestMode::none}) {
    PackStore store(mode);
    auto parts = model(1);
    auto first = store.publish(parts);
    auto files = store.pack_files();
    CHECK(store.publish(parts) == first);
    CHECK(store.new_blobs.empty());
    CHECK(store.shared_bytes == join(parts).size());
    CHECK(store.pack_files() == files);
    CHECK(store.holds(first, parts));
  }
}

TEST_CASE("a derived file adds its new bytes and no more blocks than they need") {
  for (DigestMode mode : {DigestMode::tree_sha256, DigestMode::none}) {
    PackStore store(mode);
    std::vector<Bytes> parts;
    for (std::uint64_t i = 0; i < 20; ++i) parts.push_back(part((i % 5 + 1) * 300 * kKiB + 8 * i, i));
    store.publish(parts);
    std::uint64_t before = store.disk_bytes();
    std::uint64_t fresh = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      parts[4 * i] = part(parts[4 * i].size(), 100 + i);
      fresh += parts[4 * i].size();
    }
    auto ids = store.publish(parts);
    CHECK(store.holds(ids, parts));
    CHECK(store.shared_bytes == join(parts).size() - fresh);
    CHECK(store.disk_bytes() - before <= fresh + fresh / 100 + 8192);
    CHECK(must(store.packs->list()).size() == 2);
    CHECK(store.fsck().clean());
  }
}

TEST_CASE("a file with a little that is known is stored whole all the same") {
  PackStore store;
  Bytes little = part(20 * kKiB, 5);
  store.publish({little});
  auto parts = model(1);
  parts.insert(parts.begin() + 2, little);
  auto ids = store.publish(parts);
  CHECK(store.holds(ids, parts));
  CHECK(store.shared_bytes == little.size());
  bool equal = false;
  for (PackId pack : must(store.packs->list())) equal |= read_text(pack_path(store.path, pack)) == as_text(join(parts));
  CHECK(equal);
  CHECK(store.gc().packs_compacted == 0);
  CHECK(store.holds(ids, parts));
}

TEST_CASE("a file that turns out known half way keeps its pack sparse") {
  PackStore store;
  Bytes known = part(4 * kMiB, 1);
  store.publish({known});
  std::uint64_t before = store.disk_bytes();
  std::vector<Bytes> parts = {part(2 * kMiB, 2), known, part(3 * kMiB + 9, 3), part(100, 4)};
  auto ids = store.publish(parts);
  CHECK(store.holds(ids, parts));
  CHECK(store.disk_bytes() - before <= 5 * kMiB + 32 * kKiB);
  CHECK(store.fsck().clean());
}

TEST_CASE("content that comes twice in one import is stored once") {
  for (DigestMode mode : {DigestMode::tree_sha256, DigestMode::none}) {
    PackStore store(mode);
    Bytes small = part(10 * kKiB, 1), large = part(4 * kMiB + 3, 2);
    std::vector<Bytes> parts = {small, large, small, part(600 * kKiB, 3), large, small};
    auto import = store.begin();
    auto ids = must(store.add(*import, parts));
    auto again = must(store.add(*import, parts));
    CHECK(ids == again);
    CHECK(ids[0] == ids[2]);
    CHECK(ids[1] == ids[4]);
    CHECK(import->new_blobs().size() == 3);
    must(import->finish());
    store.index.publish(import->new_blobs(), ids);
    CHECK(store.holds(ids, parts));
  }
}

TEST_CASE("small files of an import share one pack") {
  PackStore store;
  auto import = store.begin();
  std::vector<ContentId> all;
  std::vector<Bytes> parts;
  for (std::uint64_t i = 0; i < 50; ++i) {
    parts.push_back(part(100 + 997 * i, i));
    auto ids = must(store.add(*import, {parts.back()}));
    all.push_back(ids[0]);
  }
  CHECK(must(store.add(*import, {})).empty());
  must(import->finish());
  store.index.publish(import->new_blobs(), all);
  CHECK(store.holds(all, parts));
  CHECK(must(store.packs->list()).size() == 1);
}

namespace {

// As if the stored content had this id: the index and the pack say so.
void forge(PackStore& store, const ContentId& stored, const ContentId& forged) {
  BlobPlace place = store.index.state().places.at(stored);
  PackToc toc = must(store.packs->toc(place.pack));
  for (PackEntry& entry : toc.entries)
    if (entry.offset == place.offset) entry.id = forged;
  must(replace_toc(toc_path(store.path, place.pack), toc));
  store.index.put(forged, place);
}

}  // namespace

TEST_CASE("the same length and XXH3-128 with another root is another content") {
  PackStore store;
  for (std::size_t size : {40 * kKiB, 3 * kMiB}) {
    Bytes bytes = part(size, size);
    auto other = store.publish({part(size, size + 1)});
    ContentId forged = identity(bytes);  // as if the stored one had been made to collide
    forged.root = other[0].root;
    forge(store, other[0], forged);
    auto ids = store.publish({bytes});
    CHECK(ids[0] == identity(bytes));
    CHECK(store.new_blobs.size() == 1);
    CHECK(store.holds(ids, {bytes}));
    CHECK(store.index.state().places.contains(forged));
  }
}

TEST_CASE("without digests bytes are compared, and a collision gets a root of its own") {
  for (std::size_t size : {40 * kKiB, 3 * kMiB}) {
    PackStore store(DigestMode::none);
    Bytes bytes = part(size, 1);
    auto other = store.publish({part(size, 2)});
    ContentId forged{size, xxh3_128(bytes), {}};
    forge(store, other[0], forged);
    auto ids = store.publish({bytes});
    CHECK(ids[0] != forged);
    CHECK(ids[0].xxh == forged.xxh);
    CHECK(store.holds(ids, {bytes}));
    CHECK(store.publish({bytes}) == ids);
    CHECK(store.new_blobs.empty());
  }
}

TEST_CASE("ids are those of the definition, whatever the cut") {
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    PackStore store(round % 3 == 0 ? DigestMode::none : DigestMode::tree_sha256);
    std::vector<Bytes> pool, parts;
    for (int i = 0; i < 6; ++i) pool.push_back(part(1 + random() % (1U << (random() % 23)), random()));
    auto import = store.begin();
    std::vector<ContentId> ids;
    for (int file = 0; file < 4; ++file) {
      std::vector<Bytes> one;
      for (std::size_t i = random() % 12; i > 0; --i) one.push_back(pool[random() % pool.size()]);
      auto got = must(store.add(*import, one));
      ids.insert(ids.end(), got.begin(), got.end());
      parts.insert(parts.end(), one.begin(), one.end());
    }
    must(import->finish());
    store.index.publish(import->new_blobs(), ids);
    CHECK(store.holds(ids, parts));
    if (store.digest == DigestMode::tree_sha256)
      for (std::size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == identity(parts[i]));
    CHECK(store.fsck().clean());
    CHECK(store.gc().blobs_freed == 0);
    CHECK(store.holds(ids, parts));
  }
}

TEST_CASE("a source that changes while it is read is refused") {
  PackStore store;
  auto parts = model(1);
  store.publish({parts[3]});  // so that the large extent is read twice
  const std::string path = store.dir / "changing";
  write_file(path, as_text(join(parts)));
  Fd reading = must(open_file(path, O_RDONLY));
  Fd writing = must(open_file(path, O_WRONLY));
  parts[3] = part(parts[3].size(), 77);
  bool done = false;
  auto tuning = small_windows();
  Status (*change)(int) = nullptr;
  SUBCASE("it grows") {
    change = [](int fd) { return write_exact(fd, 20 * kMiB, as_bytes("x"), "source"); };
  }
  SUBCASE("a byte is overwritten") {
    change = [](int fd) { return write_exact(fd, 3 * kMiB, as_bytes("x"), "source"); };
  }
  SUBCASE("it is cut") {
    change = [](int fd) { return ::ftruncate(fd, kMiB) == 0 ? Status{} : Status{Error{Errc::io, "ftruncate"}}; };
  }
  tuning.after_read = [&](std::uint64_t offset) {
    if (offset < kMiB || std::exchange(done, true)) return;
    must(change(writing.get()));
  };
  auto import = store.begin(tuning);
  CHECK(code_of(import->add(reading.get(), "changing", ranges_of(parts), no_progress())) == Errc::changed);
  CHECK(done);
  CHECK_FALSE(import->finish().ok());
  import.reset();
  CHECK(store.temporaries().empty());
  CHECK(must(store.packs->list()).size() == 1);
}

TEST_CASE("ranges that do not cover the file are refused") {
  PackStore store;
  Fd fd = store.source(part(1000, 1));
  std::vector<std::vector<Range>> bad = {{},
                                         {{0, 999}},
                                         {{0, 1001}},
                                         {{1, 999}},
                                         {{0, 500}, {501, 499}},
                                         {{0, 1000}, {1000, 0}},
                                         {{0, 1000}, {1000, UINT64_MAX}}};
  for (const auto& ranges : bad) {
    auto import = store.begin();
    CHECK_FALSE(import->add(fd.get(), "source", ranges, no_progress()).ok());
  }
}

TEST_CASE("an import that is stopped, fails or is dropped leaves nothing") {
  PackStore store;
  auto parts = model(1);
  int stops = 0;
  for (bool finished = false; !finished; ++stops) {
    auto import = store.begin();
    Fd fd = store.source(join(parts));
    StopAfter stop(stops);
    auto added = import->add(fd.get(), "source", ranges_of(parts), stop);
    finished = added.ok();
    if (!finished) CHECK(added.error().code == Errc::cancelled);
  }
  CHECK(stops > 5);  // every read asks
  {
    auto import = store.begin();
    must(store.add(*import, parts));
    CHECK(store.temporaries().size() == 1);
  }
  CHECK(store.temporaries().empty());
  CHECK(store.pack_files().empty());
}

TEST_CASE("progress counts each byte of the source once") {
  PackStore store;
  auto parts = model(1);
  store.publish(parts);
  parts[3] = part(parts[3].size(), 9);  // read twice
  Count count;
  auto import = store.begin();
  Fd fd = store.source(join(parts));
  must(import->add(fd.get(), "source", ranges_of(parts), count));
  CHECK(count.done == join(parts).size());
}

TEST_CASE("what an import relies on is locked until the import goes") {
  PackStore store;
  auto parts = model(1);
  auto ids = store.publish(parts);
  store.index.release(ids);  // removed meanwhile
  auto import = store.begin();
  CHECK(must(store.add(*import, parts)) == ids);
  CHECK(import->new_blobs().empty());
  CHECK(store.gc().packs_deleted == 1);
  store.commit(*import, "", ids);
  CHECK(import->new_blobs().size() == ids.size());
  import.reset();
  CHECK(store.gc().blobs_freed == 0);
  CHECK(store.fsck().clean());
  CHECK(store.holds(ids, parts));
}

TEST_CASE("an index that names a lost pack is an error that says what to do") {
  PackStore store;
  auto ids = store.publish(model(1));
  must(remove_file(pack_path(store.path, must(store.packs->list())[0])));
  auto import = store.begin();
  auto added = store.add(*import, model(1));
  CHECK(code_of(added) == Errc::corrupt);
  CHECK(added.error().message.find("fsck --rebuild") != std::string::npos);
  CHECK(code_of(store.packs->lock_blob(ids[0])) == Errc::corrupt);
}

TEST_CASE("a full disk is no_space and leaves nothing") {
  TempDir dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
    MESSAGE("not tried: mounting a small tmpfs needs rights");
    return;
  }
  const std::string path = dir / "store";
  {
    PackStore source;
    MemoryIndex index;
    must(make_directories(path + "/packs"));
    auto import = must(Importer::begin(path, DigestMode::tree_sha256, index, small_windows()));
    auto added = source.add(*import, model(1));
    Status finished = added.ok() ? import->finish() : Status{added.error()};
    CHECK(code_of(finished) == Errc::no_space);
    import.reset();
    CHECK(must(list_directory(path + "/packs")).empty());
    CHECK(must(list_directory(path + "/tmp")).empty());
  }
  CHECK(::umount2(dir.path().c_str(), MNT_DETACH) == 0);
}

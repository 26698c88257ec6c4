#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "fakes/stop_after.h"
#include "pack_fixture.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

Bytes part(std::size_t bytes, std::uint64_t seed) {
  return random_bytes(bytes, seed);
}

// A header, tensors that fit into a window of 2 MiB, tensors that do not, and odd lengths.
std::vector<Bytes> model(std::uint64_t seed) {
  return {part(3001, seed),     part(700 * kKiB, seed + 1),     part(17, seed + 2),      part(3 * kMiB + 5, seed + 3),
          part(kMiB, seed + 4), part(900 * kKiB + 1, seed + 5), part(5 * kMiB, seed + 6)};
}

ContentId identity(const Bytes& bytes) {
  return {bytes.size(), tree_sha256(bytes)};
}

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

TEST_CASE("known content is not stored again") {
  PackStore store;
  auto parts = model(1);
  auto first = store.publish(parts);
  auto files = store.pack_files();
  CHECK(store.publish(parts) == first);
  CHECK(store.new_blobs.empty());
  CHECK(store.shared_bytes == join(parts).size());
  CHECK(store.pack_files() == files);
  CHECK(store.holds(first, parts));
}

TEST_CASE("a derived file adds its new bytes and no more blocks than they need") {
  PackStore store;
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

TEST_CASE("a file with little known content is stored whole") {
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
  PackStore store;
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

void flip(const std::string& path, std::uint64_t offset) {
  Fd fd = must(open_file(path, O_RDWR));
  Bytes byte(1);
  must(read_exact(fd.get(), offset, byte, path));
  byte[0] ^= std::byte{1};
  must(write_exact(fd.get(), offset, byte, path));
}

// Adds a file and checks that each byte is read once.
std::vector<ContentId> add_reading_once(PackStore& store, Importer& import, const std::vector<Bytes>& parts,
                                        std::multiset<std::uint64_t>& reads) {
  reads.clear();
  auto ids = must(store.add(import, parts));
  for (std::uint64_t offset : reads) CHECK(reads.count(offset) == 1);
  return ids;
}

}  // namespace

TEST_CASE("an import reads its source once, whatever the store has") {
  PackStore store;
  std::multiset<std::uint64_t> reads;
  auto tuning = small_windows();
  tuning.after_read = [&](std::uint64_t offset) { reads.insert(offset); };
  const auto publish = [&](const std::vector<Bytes>& parts) {
    auto import = store.begin(tuning);
    auto ids = add_reading_once(store, *import, parts, reads);
    must(import->finish());
    store.index.publish(import->new_blobs(), ids);
    for (std::size_t i = 0; i < parts.size(); ++i) CHECK(ids[i] == identity(parts[i]));
    CHECK(store.holds(ids, parts));
    return import->new_blobs().size();
  };
  auto parts = model(1);
  CHECK(publish(parts) == parts.size());
  CHECK(publish(parts) == 0);
  parts[3] = part(parts[3].size(), 9);  // known length, new content
  CHECK(publish(parts) == 1);
  parts[6].back() ^= std::byte{1};  // its head equals that of known content
  CHECK(publish(parts) == 1);
  Bytes little = part(20 * kKiB, 5);
  CHECK(publish({little}) == 1);
  auto whole = model(100);
  whole.insert(whole.begin() + 2, little);  // stored whole, including the known part
  CHECK(publish(whole) == whole.size() - 1);
}

TEST_CASE("holes of a source are not read, and are zeros all the same") {
  PackStore store;
  std::vector<Bytes> parts = {part(3001, 1),        Bytes(20 * kMiB), part(kMiB, 2),
                              Bytes(9 * kMiB + 77), part(5, 3),       Bytes(4 * kMiB)};
  const std::string path = store.dir / "sparse";
  write_file(path, "");
  Fd file = must(open_file(path, O_RDWR));
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i % 2 == 0) must(write_exact(file.get(), at, parts[i], path));
    at += parts[i].size();
  }
  REQUIRE(::ftruncate(file.get(), static_cast<off_t>(at)) == 0);
  std::uint64_t reads = 0;
  auto tuning = small_windows();
  tuning.after_read = [&](std::uint64_t) { ++reads; };
  auto import = store.begin(tuning);
  const auto extents = must(import->add(file.get(), path, ranges_of(parts), no_progress()));
  must(import->finish());
  REQUIRE(extents.size() == parts.size());
  std::vector<ContentId> ids;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(extents[i].id == identity(parts[i]));
    ids.push_back(extents[i].id);
  }
  CHECK(reads <= 12);  // of 1 MiB each, for a file of 35 MiB
  store.index.publish(import->new_blobs(), ids);
  CHECK(store.holds(ids, parts));
}

TEST_CASE("content that begins like stored content is another content") {
  for (std::size_t differs : {kMiB, 2 * kMiB - 1, 2 * kMiB, 6 * kMiB + 3, 9 * kMiB, 9 * kMiB + 4}) {
    CAPTURE(differs);
    PackStore store;
    Bytes first = part(9 * kMiB + 5, 1), second = first;
    second[differs] ^= std::byte{1};
    auto one = store.publish({part(100, 2), first});
    auto two = store.publish({part(100, 2), second});
    CHECK(two[1] == identity(second));
    CHECK(store.new_blobs.size() == 1);
    CHECK(store.holds({one[1], two[1]}, {first, second}));
    CHECK(store.publish({second, first}) == std::vector{two[1], one[1]});
    CHECK(store.new_blobs.size() <= 1);  // the hint leads to one of the two: the other is written, then dropped
    CHECK(store.fsck().clean());
  }
}

TEST_CASE("a hint that is missing or wrong changes nothing but the way") {
  PackStore store;
  Bytes large = part(5 * kMiB + 1, 1), other = part(5 * kMiB + 1, 2);
  auto ids = store.publish({large, other});
  const std::uint64_t hint = xxh3_64(std::span(large).first(kMiB));
  SUBCASE("it leads to other content") {
    store.index.hint(large.size(), hint, ids[1]);
  }
  SUBCASE("the hint names content that the store lacks") {
    store.index.hint(large.size(), hint, {large.size(), {}});
  }
  SUBCASE("the hint names a blob that the store lacks") {
    store.index.hint(large.size(), hint, {1, {}});
  }
  const std::uint64_t before = store.disk_bytes();
  CHECK(store.publish({large}) == std::vector{ids[0]});
  CHECK(store.new_blobs.empty());
  CHECK(store.shared_bytes == large.size());
  CHECK(store.disk_bytes() == before);
  // Bytes that were written in vain leave no gap between other blobs.
  auto more = store.publish({part(5000, 3), large, part(6000, 4)});
  CHECK(store.holds(more, {part(5000, 3), large, part(6000, 4)}));
  CHECK(store.disk_bytes() <= before + 32 * kKiB);
  CHECK(store.fsck().clean());
}

TEST_CASE("damaged content is stored again") {
  const std::vector<Bytes> parts = model(1);
  const std::vector<Range> ranges = ranges_of(parts);
  for (std::size_t hurt : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{6}})
    for (double where : {0.0, 0.5, 1.0})
      for (bool hinted : {true, false}) {
        CAPTURE(hurt);
        CAPTURE(where);
        CAPTURE(hinted);
        PackStore store;
        auto ids = store.publish(parts);
        const PackId damaged = must(store.packs->list())[0];
        const auto offset = static_cast<std::uint64_t>(where * static_cast<double>(ranges[hurt].length - 1));
        flip(pack_path(store.path, damaged), ranges[hurt].offset + offset);
        if (!hinted && ranges[hurt].length > kMiB)
          store.index.hint(ranges[hurt].length, xxh3_64(std::span(parts[hurt]).first(kMiB)), {1, {}});
        CHECK(store.publish(parts) == ids);
        REQUIRE(store.new_blobs.size() == 1);
        CHECK(store.new_blobs[0].id == ids[hurt]);
        CHECK(store.new_blobs[0].replaces);
        CHECK(store.holds(ids, parts));
        CHECK(store.fsck().clean());  // the damaged copy is not live
        CHECK(store.gc().bytes_freed == 0);
        CHECK(store.holds(ids, parts));
      }
}

TEST_CASE("content of a truncated or lost pack is stored again") {
  PackStore store;
  auto parts = model(1);
  auto ids = store.publish(parts);
  const std::string path = pack_path(store.path, must(store.packs->list())[0]);
  SUBCASE("short") {
    REQUIRE(::truncate(path.c_str(), kMiB) == 0);
  }
  SUBCASE("lost") {
    must(remove_file(path));
  }
  CHECK(store.publish(parts) == ids);
  CHECK(store.holds(ids, parts));
}

TEST_CASE("ids are those of the definition, whatever the cut") {
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    PackStore store;
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
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == identity(parts[i]));
    CHECK(store.fsck().clean());
    CHECK(store.gc().blobs_freed == 0);
    CHECK(store.holds(ids, parts));
  }
}

TEST_CASE("a source that changes while it is read is refused") {
  PackStore store;
  auto parts = model(1);
  store.publish({parts[3]});
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
  CHECK(stops > 5);  // each read polls for cancellation
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
  parts[3] = part(parts[3].size(), 9);
  Count count;
  auto import = store.begin();
  Fd fd = store.source(join(parts));
  must(import->add(fd.get(), "source", ranges_of(parts), count));
  CHECK(count.done == join(parts).size());
}

TEST_CASE("packs that an import shares stay until the import ends") {
  PackStore store;
  auto parts = model(1);
  auto ids = store.publish(parts);
  store.index.release(ids);  // the version was removed meanwhile
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
  Status held = import->hold(ids);
  CHECK(code_of(held) == Errc::corrupt);
  CHECK(held.error().message.find("fsck --rebuild") != std::string::npos);
  CHECK(code_of(store.packs->open_blob(ids[0])) == Errc::corrupt);
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
    auto import = must(Importer::begin(safe(path), index, small_windows()));
    auto added = source.add(*import, model(1));
    Status finished = added.ok() ? import->finish() : Status{added.error()};
    CHECK(code_of(finished) == Errc::no_space);
    import.reset();
    CHECK(must(list_directory(path + "/packs")).empty());
    CHECK(must(list_directory(path + "/tmp")).empty());
  }
  CHECK(::umount2(dir.path().c_str(), MNT_DETACH) == 0);
}

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>

#include "pack_fixture.h"
#include "store/temp_area.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

std::vector<Bytes> tensors(std::size_t count, std::size_t bytes, std::uint64_t seed) {
  std::vector<Bytes> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(random_bytes(bytes + 8 * i, seed + i));
  return parts;
}

template <class T>
std::vector<T> every(std::size_t step, const std::vector<T>& all, bool chosen) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((i % step == 0) == chosen) some.push_back(all[i]);
  return some;
}

}  // namespace

TEST_CASE("a pack that nobody needs goes") {
  PackStore store;
  auto ids = store.publish(tensors(5, 500 * kKiB, 1));
  CHECK(store.gc().blobs_freed == 0);
  store.index.release(ids);
  std::uint64_t disk = store.disk_bytes();
  GcReport foreseen = store.gc(true);
  CHECK(foreseen.blobs_freed == 5);
  CHECK(foreseen.disk_bytes_freed == disk);
  CHECK(store.pack_files().size() == 2);
  GcReport report = store.gc();
  CHECK(report.packs_deleted == 1);
  CHECK(report.blobs_freed == 5);
  CHECK(report.disk_bytes_freed == disk);
  CHECK(store.pack_files().empty());
  CHECK(store.index.state().places.empty());
}

TEST_CASE("dead blobs give their blocks back and living ones stay right") {
  PackStore store;
  auto parts = tensors(10, 600 * kKiB, 1);
  auto ids = store.publish(parts);
  store.index.release(every(3, ids, true));
  auto live_ids = every(3, ids, false);
  auto live = every(3, parts, false);
  std::uint64_t needed = join(live).size();
  GcReport report = store.gc();
  CHECK(report.packs_punched == 1);
  CHECK(report.blobs_freed == 4);
  CHECK(store.disk_bytes() <= needed + needed / 100 + 64 * kKiB);
  CHECK(store.holds(live_ids, live));
  CHECK(store.index.state().places.size() == live.size());
  CHECK(store.fsck().clean());
  report = store.gc();
  CHECK(report.packs_punched + report.packs_compacted + report.disk_bytes_freed == 0);
  auto again = store.publish(parts);  // what was freed comes anew
  CHECK(again == ids);
  CHECK(store.new_blobs.size() == 4);
  CHECK(store.holds(again, parts));
}

TEST_CASE("small blobs that pin blocks are compacted") {
  PackStore store;
  auto parts = tensors(2000, 1500, 1);
  auto ids = store.publish(parts);
  store.index.release(every(4, ids, false));
  auto live_ids = every(4, ids, true);
  auto live = every(4, parts, true);
  auto before = must(store.packs->list());
  GcReport report = store.gc();
  CHECK(report.packs_compacted == 1);
  CHECK(must(store.packs->list()).size() == 1);
  CHECK(must(store.packs->list()) != before);
  std::uint64_t needed = join(live).size();
  CHECK(store.disk_bytes() <= needed + needed / 100 + 64 * kKiB);
  CHECK(store.holds(live_ids, live));
  CHECK(store.fsck().clean());
  CHECK(store.gc().packs_compacted == 0);
  CHECK(store.temporaries().empty());
}

TEST_CASE("many tiny packs become one") {
  PackStore store;
  std::vector<ContentId> ids;
  std::vector<Bytes> parts;
  for (std::uint64_t i = 0; i < 20; ++i) {
    parts.push_back(random_bytes(2000 + i, i));
    ids.push_back(store.publish({parts.back()})[0]);
  }
  CHECK(must(store.packs->list()).size() == 20);
  auto used = must(store.packs->lock_blob(ids[3]));
  GcReport report = store.gc();
  CHECK(report.packs_compacted == 19);
  CHECK(report.busy_packs == 1);
  CHECK(must(store.packs->list()).size() == 2);
  CHECK(store.pack_files().size() == 4);
  CHECK(store.holds(ids, parts));
  CHECK(store.fsck().clean());
}

TEST_CASE("a blob with damage is not carried into a new pack") {
  PackStore store;
  auto ids = store.publish(tensors(2000, 1500, 1));
  store.index.release(every(4, ids, false));
  auto place = store.index.state().places.at(ids[8]);
  Fd fd = must(open_file(pack_path(store.path, place.pack), O_WRONLY));
  must(write_exact(fd.get(), place.offset + 7, as_bytes("damage"), "pack"));
  CHECK(store.gc().packs_compacted == 0);
  CHECK(store.index.state().places.at(ids[8]).pack == place.pack);
  CHECK(store.fsck().problems.size() == 1);
  CHECK(store.pack_files().size() == 2);
}

TEST_CASE("a pack that lost its end keeps no other from being compacted") {
  PackStore store;
  auto cut_ids = store.publish(tensors(2000, 1500, 1));
  auto parts = tensors(2000, 1500, 5000);
  auto ids = store.publish(parts);
  store.index.release(every(4, cut_ids, false));
  store.index.release(every(4, ids, false));
  PackId cut = store.index.state().places.at(cut_ids[8]).pack;
  std::filesystem::resize_file(pack_path(store.path, cut), 100 * kKiB);
  CHECK(store.gc().packs_compacted == 1);
  CHECK(store.index.state().places.at(cut_ids[8]).pack == cut);
  CHECK(store.holds(every(4, ids, true), every(4, parts, true)));
}

TEST_CASE("a pack in use is left alone") {
  PackStore store;
  auto parts = tensors(4, 600 * kKiB, 1);
  auto ids = store.publish(parts);
  PackId pack = must(store.packs->list())[0];
  SUBCASE("by a handle") {
    auto reader = must(store.packs->open(pack));
    store.index.release(ids);
    CHECK(store.gc().busy_packs == 1);
    Bytes bytes(parts[0].size());
    must(read_exact(reader->fd(), 0, bytes, "pack"));
    CHECK(bytes == parts[0]);
  }
  SUBCASE("by a lock of another descriptor") {
    Fd fd = must(open_file(pack_path(store.path, pack), O_RDONLY));
    must(lock_fd(fd.get(), LockKind::shared, LockWait::yes, "pack"));
    store.index.release(ids);
    CHECK(store.gc().busy_packs == 1);
    MappedFile map = must(MappedFile::map(fd.get(), join(parts).size(), "pack"));
    CHECK(std::equal(map.bytes().begin(), map.bytes().end(), join(parts).begin()));
  }
  CHECK(store.pack_files().size() == 2);
  CHECK(store.gc().packs_deleted == 1);
  CHECK(store.pack_files().empty());
}

TEST_CASE("an open handle outlives a compaction of what it does not hold") {
  PackStore store;
  auto parts = tensors(2000, 1500, 1);
  auto ids = store.publish(parts);
  store.index.release(every(4, ids, false));
  Fd bare = must(open_file(pack_path(store.path, must(store.packs->list())[0]), O_RDONLY));  // no lock
  MappedFile map = must(MappedFile::map(bare.get(), 1500, "pack"));
  CHECK(store.gc().packs_compacted == 1);
  CHECK(Bytes(map.bytes().begin(), map.bytes().end()) == parts[0]);  // a living blob: the old file keeps it
}

TEST_CASE("packs of an import that died before its publish are garbage, a running one's are not") {
  PackStore store;
  auto import = store.begin();
  must(store.add(*import, tensors(3, kMiB, 1)));
  must(import->finish());
  CHECK(store.pack_files().size() == 2);
  CHECK(store.gc().busy_packs == 1);
  import.reset();
  CHECK(store.gc().packs_deleted == 1);
  CHECK(store.pack_files().empty());
}

TEST_CASE("temporaries of the dead go, those of the living stay") {
  PackStore store;
  auto import = store.begin();
  must(store.add(*import, tensors(3, kMiB, 1)));
  const std::string dead = store.path + "/tmp/dead";
  write_file(dead + "/0123456789abcdef.pack", "x");
  write_file(store.path + "/packs/0123456789abcde0.toc", "orphan");
  std::string running = must(list_directory(store.path + "/tmp"))[0] == "dead"
                            ? must(list_directory(store.path + "/tmp"))[1]
                            : must(list_directory(store.path + "/tmp"))[0];
  write_file(store.path + "/tmp/" + running + "/0123456789abcde1.pack", "soon renamed");
  write_file(store.path + "/packs/0123456789abcde1.toc", "of a running import");
  CHECK(store.gc(true).stale_temporaries == 2);
  CHECK(store.temporaries().size() == 2);
  CHECK(store.gc().stale_temporaries == 2);
  CHECK(store.temporaries() == std::vector<std::string>{running});
  CHECK(store.pack_files() == std::vector<std::string>{"0123456789abcde1.toc"});
}

TEST_CASE("a gc that died between .toc and punching is made good by the next") {
  PackStore store;
  auto parts = tensors(6, 600 * kKiB, 1);
  auto ids = store.publish(parts);
  PackId pack = must(store.packs->list())[0];
  PackToc toc = must(store.packs->toc(pack));
  toc.entries.resize(2);
  must(replace_toc(toc_path(store.path, pack), toc));
  for (std::size_t i = 2; i < ids.size(); ++i) store.index.forget(ids[i]);
  CHECK(store.gc().packs_punched == 1);
  CHECK(store.disk_bytes() <= 2 * 600 * kKiB + 128 * kKiB);
  CHECK(store.holds({ids[0], ids[1]}, {parts[0], parts[1]}));
  CHECK(store.gc().packs_punched == 0);
}

TEST_CASE("a pack without a readable .toc is not touched") {
  PackStore store;
  auto ids = store.publish(tensors(3, kMiB, 1));
  store.index.release(ids);
  const std::string toc = toc_path(store.path, must(store.packs->list())[0]);
  SUBCASE("missing") {
    must(remove_file(toc));
  }
  SUBCASE("damaged") {
    write_file(toc, "garbage");
  }
  CHECK(store.gc().packs_deleted == 0);
  CHECK(must(store.packs->list()).size() == 1);
}

TEST_CASE("a directory below tmp/ is claimed by one at a time") {
  PackStore store;
  auto area = must(TempArea::make(store.path));
  CHECK_FALSE(must(remove_if_stale(area->path(), false)));
  const std::string path = area->path();
  area.reset();
  CHECK_FALSE(must(remove_if_stale(path, false)));
  CHECK(store.temporaries().empty());
}

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "diskformat/pack_names.h"
#include "pack_fixture.h"
#include "packs/temp_area.h"
#include "store_paths.h"

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

TEST_CASE("gc deletes a pack without live blobs") {
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

TEST_CASE("a pack that is more than a fifth dead is rewritten, and living blobs stay right") {
  PackStore store;
  auto parts = tensors(10, 600 * kKiB, 1);
  auto ids = store.publish(parts);
  store.index.release(every(3, ids, true));
  auto live_ids = every(3, ids, false);
  auto live = every(3, parts, false);
  std::uint64_t needed = join(live).size();
  GcReport report = store.gc();
  CHECK(report.packs_compacted == 1);
  CHECK(report.dead_bytes == 0);
  CHECK(report.blobs_freed == 4);
  CHECK(store.disk_bytes() <= needed + needed / 100 + 64 * kKiB);
  CHECK(store.holds(live_ids, live));
  CHECK(store.index.state().places.size() == live.size());
  CHECK(store.fsck().clean());
  report = store.gc();
  CHECK(report.packs_deleted + report.packs_compacted + report.disk_bytes_freed == 0);
  auto again = store.publish(parts);  // the freed blobs are stored again
  CHECK(again == ids);
  CHECK(store.new_blobs.size() == 4);
  CHECK(store.holds(again, parts));
}

TEST_CASE("small blobs are rewritten too") {
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
  auto used = must(store.packs->open_blob(ids[3]));
  GcReport report = store.gc();
  CHECK(report.packs_compacted == 20);
  CHECK(report.busy_packs == 0);
  CHECK(must(store.packs->list()).size() == 1);
  CHECK(store.pack_files().size() == 2);
  CHECK(store.holds(ids, parts));
  Bytes bytes(parts[3].size());
  must(read_exact(used.pack->fd(), used.offset, bytes, "pack"));  // the deleted pack is still open
  CHECK(bytes == parts[3]);
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

namespace {

// True if two files in this directory share blocks after a copy. gc then rewrites each pack that has dead blobs.
bool shares_blocks(const PackStore& store) {
  write_file(store.dir / "from", std::string(kPackBlock, 'x'));
  const Fd from = must(open_file(store.dir / "from", O_RDONLY));
  const Fd to = must(open_file(store.dir / "to", O_WRONLY | O_CREAT));
  return clone_file(from.get(), to.get());
}

// Calls a function once, when a blob is read.
class AtFirstRead final : public Progress {
 public:
  explicit AtFirstRead(std::function<void()> run) : run_(std::move(run)) {}
  void total(std::uint64_t) override {}
  void advance(std::uint64_t) override {}
  void phase(std::string_view) override {}
  bool cancelled() const override {
    if (++polls_ == 3) run_();  // polls before it: one for each of the two passes over packs
    return false;
  }

 private:
  const std::function<void()> run_;
  mutable int polls_ = 0;
};

}  // namespace

TEST_CASE("a pack with few dead blobs waits, is told of, and is rewritten on demand") {
  PackStore store;
  const auto parts = tensors(10, 600 * kKiB, 1);
  const auto ids = store.publish(parts);
  const auto before = store.pack_files();
  store.index.release({&ids[4], 1});
  if (!shares_blocks(store)) {
    const GcReport report = store.gc();
    CHECK(report.packs_compacted + report.blobs_freed == 0);
    CHECK(report.dead_bytes == ids[4].length);
    CHECK(store.pack_files() == before);
    CHECK(store.index.state().places.contains(ids[4]));  // an import may reuse the blob
  }
  const GcReport foreseen = store.collect({{true, 0, true}});
  CHECK(foreseen.packs_compacted == 1);
  CHECK(foreseen.blobs_freed == 1);
  CHECK(foreseen.dead_bytes == 0);
  CHECK(store.pack_files() == before);
  const GcReport report = store.collect({{false, 0, true}});
  CHECK(report.packs_compacted == 1);
  CHECK(report.blobs_freed == 1);
  CHECK(report.dead_bytes == 0);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (i != 4) CHECK(store.read(ids[i]) == parts[i]);
  CHECK_FALSE(store.index.state().places.contains(ids[4]));
  CHECK(store.fsck().clean());
}

TEST_CASE("open and mapped packs keep their bytes during gc") {
  PackStore store;
  const auto parts = tensors(8, 300 * kKiB, 1);
  const auto ids = store.publish(parts);
  const PackId pack = must(store.packs->list())[0];
  const auto reader = must(store.packs->open(pack));
  const Fd bare = must(open_file(pack_path(store.path, pack), O_RDONLY));
  const MappedFile map = must(MappedFile::map(bare.get(), join(parts).size(), "pack"));
  store.index.release(every(2, ids, true));
  CHECK(store.gc().packs_compacted == 1);
  CHECK(store.holds(every(2, ids, false), every(2, parts, false)));
  store.index.release(ids);
  CHECK(store.gc().packs_deleted == 1);
  CHECK(store.pack_files().empty());
  CHECK(std::equal(map.bytes().begin(), map.bytes().end(), join(parts).begin()));
  Bytes bytes(join(parts).size());
  must(read_exact(reader->fd(), 0, bytes, "pack"));
  CHECK(bytes == join(parts));
}

TEST_CASE("a pack that is being filled, or that a publish relies on, is left alone") {
  PackStore store;
  const auto ids = store.publish(tensors(4, 600 * kKiB, 1));
  const PackId pack = must(store.packs->list())[0];
  store.index.release(ids);
  SUBCASE("filled") {
    Fd filler = must(open_file(pack_path(store.path, pack), O_RDWR));
    must(lock_fd(filler.get(), LockKind::exclusive, LockWait::no, "pack"));
    CHECK(store.gc().busy_packs == 1);
  }
  SUBCASE("relied on") {
    CollectInput input;
    input.is_relied_on = [pack](const PackToc& toc) { return toc.pack == pack; };
    CHECK(store.collect(input).busy_packs == 1);
  }
  CHECK(store.pack_files().size() == 2);
  const Fd reader = must(open_file(pack_path(store.path, pack), O_RDONLY));  // a reader's lock: any user could hold one
  must(lock_fd(reader.get(), LockKind::shared, LockWait::no, "pack"));
  CHECK(store.gc().packs_deleted == 1);
}

TEST_CASE("gc keeps a pack if a dead blob of it is used again during the copy") {
  PackStore store;
  const auto parts = tensors(6, 600 * kKiB, 1);
  const auto ids = store.publish(parts);
  const PackId old = must(store.packs->list())[0];
  store.index.release(every(2, ids, true));
  AtFirstRead taken_up([&] { store.index.publish_for("other", {}, {&ids[2], 1}); });
  CHECK(store.collect({}, taken_up).packs_compacted == 0);
  CHECK(store.index.state().places.at(ids[2]).pack == old);
  CHECK(store.index.state().places.at(ids[1]).pack != old);
  CHECK(store.holds({ids[1], ids[2]}, {parts[1], parts[2]}));
  CHECK(store.fsck().clean());
  CHECK(store.gc().blobs_freed == 2);
  CHECK(store.holds({ids[1], ids[2]}, {parts[1], parts[2]}));
}

TEST_CASE("a gc that died before it unlinked the old pack is made good by the next") {
  PackStore store;
  const auto parts = tensors(6, 600 * kKiB, 1);
  const auto ids = store.publish(parts);
  const PackId old = must(store.packs->list())[0];
  const PackToc toc = must(store.packs->toc(old));
  store.index.release({&ids[0], 3});
  CHECK(store.gc().packs_compacted == 1);
  write_file(pack_path(store.path, old), "as long as it was");
  must(write_toc(toc_path(store.path, old), toc));
  CHECK(store.gc().packs_deleted == 1);
  CHECK(store.pack_files().size() == 2);
  CHECK(store.holds({ids[3], ids[4], ids[5]}, {parts[3], parts[4], parts[5]}));
}

TEST_CASE("gc keeps the blobs of a removed version until it is reaped") {
  PackStore store;
  const auto parts = tensors(4, 600 * kKiB, 1);
  const auto ids = store.publish(parts);
  store.index.release(ids);
  store.index.set_unreaped({7});
  CollectInput input;
  input.content_of = [&](VersionId) { return Result(std::vector<ContentId>{ids[0], ids[1]}); };
  GcReport report = store.collect(input);
  CHECK(report.packs_deleted == 0);
  CHECK(report.packs_compacted == 1);
  CHECK(store.holds({ids[0], ids[1]}, {parts[0], parts[1]}));
  store.index.set_unreaped({});
  CHECK(store.collect(input).packs_deleted == 1);
}

TEST_CASE("packs that an import placed without a publish are garbage") {
  PackStore store;
  auto import = store.begin();
  must(store.add(*import, tensors(3, kMiB, 1)));
  must(import->finish());
  CHECK(store.pack_files().size() == 2);
  CHECK(store.gc().packs_deleted == 1);
  CHECK(store.pack_files().empty());
}

TEST_CASE("gc removes temporary files of dead processes only") {
  PackStore store;
  auto import = store.begin();
  must(store.add(*import, tensors(3, kMiB, 1)));
  const std::string dead = store.path + "/tmp/dead";
  write_file(dead + "/0123456789abcdef.pack", "x");
  write_file(store.path + "/packs/0123456789abcde0.toc", "orphan");
  const auto names = must(list_directory(store.path + "/tmp"));
  const std::string running = names[0] == "dead" ? names[1] : names[0];
  CHECK(store.gc(true).stale_temporaries == 2);
  CHECK(store.temporaries().size() == 2);
  CHECK(store.gc().stale_temporaries == 2);
  CHECK(store.temporaries() == std::vector<std::string>{running});
  CHECK(store.pack_files().empty());
}

TEST_CASE("gc leaves a pack alone of which the index has lost rows") {
  PackStore store;
  const auto parts = tensors(6, 600 * kKiB, 1);
  const auto ids = store.publish(parts);
  store.index.lose(ids[0]);
  store.index.release(std::vector(ids.begin() + 1, ids.begin() + 4));  // half of the pack is dead
  CHECK(store.gc().packs_compacted == 0);
  store.index.release(std::vector(ids.begin() + 4, ids.end()));  // all blobs that the index knows are dead
  CHECK(store.gc().packs_deleted == 0);
  CHECK(store.pack_files().size() == 2);
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
  auto area = must(TempArea::make(safe(store.path)));
  CHECK_FALSE(must(remove_if_stale(area->path(), false)));
  const SafePath path = area->path();
  area.reset();
  CHECK_FALSE(must(remove_if_stale(path, false)));
  CHECK(store.temporaries().empty());
}

#include "assembly/assembly.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>

#include "assembly/fill.h"
#include "diskformat/pack_names.h"
#include "fakes/node_fixture.h"
#include "os/sys.h"
#include "store_paths.h"
#include "weft/programs/vfs.h"
#include "weft/store/fsck.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

// 8 MiB in 8 tensors. `seed` determines the first two; the others are the same in all variants.
void write_variant(const std::string& directory, std::uint64_t seed) {
  std::vector<NamedTensor> tensors;
  for (unsigned i = 0; i < 8; ++i)
    tensors.push_back(
        {"layer." + std::to_string(i), "F32", {512, 512}, random_bytes(kMiB, i < 2 ? seed * 100 + i : i)});
  write_file(directory + "/model.safetensors", safetensors_file(tensors));
}

// A store with a model in one pack, and a model derived from it.
struct Derived : Fixture {
  Derived() {
    write_variant(dir / "base", 1);
    write_variant(dir / "derived", 2);
    publish({dir / "base"}, "base");
    row = publish({dir / "derived"}, "derived").outcome.version;
    content = read_text(dir / "derived/model.safetensors");
    REQUIRE(assembled(0)->sweep(nullptr, false).ok());  // if the file system shares blocks, the file exists already
    const auto version = load_version(*store, no_resolver(), row);
    REQUIRE(version.ok());
    source = assembled_source(version->tree->manifest().files[0], "derived@1");
  }
  std::unique_ptr<AssembledPacks> assembled(std::optional<std::uint64_t> bytes_max = {}) const {
    return assembled_packs(*store, bytes_max);
  }
  // Assembles the file under the boot id `boot`. If `damaged`, flips one of its bytes then.
  void assemble_under(const std::string& boot, bool damaged) {
    AssembledPacks::Options options;
    options.boot = boot;
    AssembledPacks packs(store->directory(), options);
    AssemblyCounts counts;
    REQUIRE(assemble_now(
                *store, packs, source, 0, UINT64_MAX, [] { return false; }, counts)
                .ok());
    if (!damaged) return;
    const auto fd = open_file(pack(), O_RDWR);
    std::byte byte[1];
    REQUIRE(read_exact(fd->get(), content.size() / 2, byte, "pack").ok());
    byte[0] ^= std::byte{1};
    REQUIRE(write_exact(fd->get(), content.size() / 2, byte, "pack").ok());
  }
  std::string pack() const { return pack_in(store->path() + "/cache", source.id); }
  RecordPin pins() const {
    return [this](const VersionRow& version, bool pinned) {
      return store->pin(version.model_name, version.number, pinned);
    };
  }
  VersionRow row;
  std::string content;
  AssembledSource source;
};

std::string read_all(int fd, std::size_t size) {
  std::string text(size, '\0');
  REQUIRE(read_exact(fd, 0, std::as_writable_bytes(std::span(text)), "test").ok());
  return text;
}

bool never() {
  return false;
}

// Records the inodes that the tree reports, and waits for them.
struct Told {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<Ino> inos;
  std::function<void(Ino)> teller() {
    return [this](Ino ino) {
      const std::lock_guard lock(mutex);
      inos.insert(ino);
      changed.notify_all();
    };
  }
  bool wait_for(Ino ino) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), [&] { return inos.contains(ino); });
  }
};

Ino file_ino(Vfs& vfs, const std::string& model) {
  Ino ino = kModelsIno;
  for (const std::string& name : {model, std::string("1"), std::string("model.safetensors")}) {
    const auto attr = vfs.lookup(ino, name);
    REQUIRE(attr.ok());
    ino = attr->ino;
  }
  return ino;
}

// True if a file waits to be assembled.
bool is_waiting(Vfs& vfs) {
  const auto status = must(vfs.open(kStatusIno));
  std::vector<std::byte> text(status->size());
  REQUIRE(status->read(0, text).ok());
  return as_text(text).find("\"waiting\": 0") == std::string_view::npos;
}

}  // namespace

TEST_CASE("an assembled file is byte for byte the published one") {
  Derived store;
  const auto packs = store.assembled();
  AssemblyCounts counts;
  REQUIRE(assemble_now(*store.store, *packs, store.source, 0, UINT64_MAX, never, counts).ok());
  CHECK(counts.made == 1);
  CHECK(counts.copied_bytes == store.content.size());
  const auto found = packs->find(store.source);
  REQUIRE(found.ok());
  CHECK(found->verified);
  CHECK(read_all(found->pack->fd(), store.content.size()) == store.content);
  CHECK(assemble_now(*store.store, *packs, store.source, 0, UINT64_MAX, never, counts).error().code == Errc::exists);
}

TEST_CASE("a failed assembly leaves no files") {
  Derived store;
  AssemblyCounts counts;
  const auto attempt = [&](const std::unique_ptr<AssembledPacks>& packs, const std::function<bool()>& cancelled) {
    return assemble_now(*store.store, *packs, store.source, 0, UINT64_MAX, cancelled, counts).error().code;
  };
  SUBCASE("cancelled") {
    CHECK(attempt(store.assembled(), [] { return true; }) == Errc::cancelled);
  }
  SUBCASE("no room") {
    CHECK(attempt(store.assembled(kMiB), never) == Errc::no_space);
  }
  SUBCASE("content gone") {
    store.source.blobs[0].root.bytes[0] ^= 1U;
    CHECK(attempt(store.assembled(), never) == Errc::not_found);
  }
  SUBCASE("content damaged") {
    const auto runs = open_runs(*store.store, store.source.blobs, 0, {});
    REQUIRE(runs.ok());
    const OpenPlace& place = runs->back().place;
    const auto fd = open_file(store.store->path() + "/packs/" + pack_name(place.pack->id()) + ".pack", O_RDWR);
    REQUIRE(write_exact(fd->get(), place.offset, std::vector<std::byte>(100), "pack").ok());
    CHECK(attempt(store.assembled(), never) == Errc::corrupt);
  }
  CHECK(store.assembled()->usage().files == 0);
  CHECK(store.assembled()->usage().parts == 0);
  CHECK(counts.made == 0);
}

TEST_CASE("a composed file that is read gets an assembled one") {
  Derived store;
  Told told;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, told.teller());
  const Ino ino = file_ino(*vfs, "derived");
  const bool costs_space = must(sharing_block_bytes(store.store->directory())) == 0;
  if (costs_space) {
    std::vector<std::byte> bytes(store.content.size());
    REQUIRE(must(vfs->open(ino))->read(0, bytes).ok());
    CHECK_FALSE(is_waiting(*vfs));  // not of one reading
    CHECK(assembled_usage(*store.store).files == 0);
  }
  {
    const auto composed = vfs->open(ino);
    REQUIRE(composed.ok());
    CHECK((*composed)->backing_fd() == -1);
    if (costs_space) CHECK_FALSE(vfs->assembled(ino));
    std::vector<std::byte> bytes(store.content.size());
    REQUIRE((*composed)->read(0, bytes).ok());
    CHECK(as_text(bytes) == store.content);
    REQUIRE(told.wait_for(ino));
    CHECK(vfs->assembled(ino));
    CHECK((*composed)->backing_fd() == -1);  // an open file stays as it was opened
  }
  const auto place = vfs->place(ino);  // in models/; hub/ has links
  REQUIRE(place.ok());
  CHECK(place->name == "model.safetensors");
  CHECK(vfs->lookup(place->dir, place->name)->ino == ino);
  auto file = vfs->open(ino);
  REQUIRE(file.ok());
  REQUIRE((*file)->backing_fd() >= 0);
  CHECK(read_all((*file)->backing_fd(), store.content.size()) == store.content);
  // An open file stays readable after its eviction.
  REQUIRE(set_assembly_max(*store.store, 0).ok());
  CHECK(assembled_usage(*store.store).files == 0);
  CHECK(read_all((*file)->backing_fd(), store.content.size()) == store.content);
  file->reset();
  const auto again = vfs->open(ino);
  REQUIRE(again.ok());
  CHECK((*again)->backing_fd() == -1);
  vfs->stop_assembling();
}

TEST_CASE("a file with an open reader is assembled after the reader has closed it") {
  Derived store;
  // with block sharing it is assembled at once, at no cost
  if (must(sharing_block_bytes(store.store->directory())) != 0) return;
  Told told;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, told.teller());
  const Ino ino = file_ino(*vfs, "derived");
  const auto read_half = [&] {
    const auto composed = must(vfs->open(ino));
    std::vector<std::byte> bytes(store.content.size() / 4);
    REQUIRE(composed->read(0, bytes).ok());
    CHECK(composed->in_memory(bytes.size(), bytes.size()).ok());
    CHECK_FALSE(is_waiting(*vfs));
  };
  read_half();
  CHECK_FALSE(is_waiting(*vfs));  // the file was not opened again
  read_half();
  REQUIRE(told.wait_for(ino));
  CHECK(vfs->assembled(ino));
  vfs->stop_assembling();
}

TEST_CASE("a file that one reader reads again is assembled") {
  Derived store;
  Told told;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, told.teller());
  const Ino ino = file_ino(*vfs, "derived");
  const auto composed = must(vfs->open(ino));
  std::vector<std::byte> bytes(store.content.size());
  for (int round = 0; round < 2; ++round) REQUIRE(composed->read(0, bytes).ok());
  REQUIRE(told.wait_for(ino));
  vfs->stop_assembling();
}

TEST_CASE("a look at a file is no reading of it") {
  Derived store;
  if (must(sharing_block_bytes(store.store->directory())) != 0) return;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, [](Ino) {});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::byte> bytes(4096);
    REQUIRE(must(vfs->open(file_ino(*vfs, "derived")))->read(0, bytes).ok());
  }
  CHECK_FALSE(is_waiting(*vfs));
  vfs->stop_assembling();
  CHECK(assembled_usage(*store.store).files == 0);
}

TEST_CASE("a file of one pack is never assembled") {
  Derived store;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, [](Ino) {});
  const auto file = vfs->open(file_ino(*vfs, "base"));
  REQUIRE(file.ok());
  CHECK((*file)->backing_fd() >= 0);
  vfs->stop_assembling();
  CHECK(assembled_usage(*store.store).files == 0);
}

TEST_CASE("without assembly, files are read from their packs, and the status gives the reason") {
  Derived store;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  SUBCASE("switched off") {
    vfs->assemble(AssemblyOptions{0}, [](Ino) {});
  }
  SUBCASE("not useful") {
    vfs->assemble_nothing("assembly_cache_max=0");
  }
  const auto status = vfs->open(kStatusIno);
  REQUIRE(status.ok());
  std::string text((*status)->size(), '\0');
  REQUIRE((*status)->read(0, std::as_writable_bytes(std::span(text))).ok());
  CHECK(text.find("assembly_cache_max=0") != std::string::npos);
  const auto file = vfs->open(file_ino(*vfs, "derived"));
  REQUIRE(file.ok());
  std::vector<std::byte> bytes(store.content.size());
  REQUIRE((*file)->read(0, bytes).ok());
  CHECK(as_text(bytes) == store.content);
}

TEST_CASE("a pinned version is assembled at once, and stays until it is unpinned or removed") {
  Derived store;
  const auto pinned = pin_version(*store.store, no_resolver(), "derived", store.pins(), no_progress());
  REQUIRE(pinned.ok());
  CHECK(pinned->files == 1);
  CHECK(pinned->bytes == store.content.size());
  CHECK(assembled_usage(*store.store).pinned_files == 1);
  REQUIRE(set_assembly_max(*store.store, 1).ok());
  CHECK(assembled_usage(*store.store).files == 1);
  SUBCASE("unpinned") {
    REQUIRE(store.store->pin("derived", 1, false).ok());
    REQUIRE(set_assembly_max(*store.store, 1).ok());
  }
  SUBCASE("removed") {
    CHECK(sweep_assembled(*store.store, false)->files == 0);
    REQUIRE(store.store->remove_version("derived", 1).ok());
    CHECK(sweep_assembled(*store.store, true)->files == 1);
    CHECK(sweep_assembled(*store.store, false)->bytes == store.content.size());
  }
  CHECK(assembled_usage(*store.store).files == 0);
  CHECK(pin_version(*store.store, no_resolver(), "base", store.pins(), no_progress())->files == 0);
  CHECK(pin_version(*store.store, no_resolver(), "nobody", store.pins(), no_progress()).error().code ==
        Errc::not_found);
}

TEST_CASE("a version that exceeds the bound is not pinned") {
  Derived store;
  REQUIRE(set_assembly_max(*store.store, kMiB).ok());
  CHECK(pin_version(*store.store, no_resolver(), "derived", store.pins(), no_progress()).error().code ==
        Errc::no_space);
  CHECK(must(must(store.store->snapshot())->pinned(0, SIZE_MAX)).empty());
  REQUIRE(store.store->pin("derived", 1, true).ok());
  CHECK(pin_version(*store.store, no_resolver(), "derived", store.pins(), no_progress()).error().code ==
        Errc::no_space);
  CHECK(must(must(store.store->snapshot())->pinned(0, SIZE_MAX)).size() == 1);  // the version pinned before
}

TEST_CASE("a file that another boot has left is read from its packs until it is verified") {
  for (const bool damaged : {false, true}) {
    Derived store;
    store.assemble_under("another boot", damaged);
    Told told;
    const auto vfs = Vfs::make(*store.store, VfsOptions{});
    vfs->assemble(AssemblyOptions{}, told.teller());
    const Ino ino = file_ino(*vfs, "derived");
    CHECK_FALSE(vfs->assembled(ino));
    {
      const auto composed = must(vfs->open(ino));
      CHECK(composed->backing_fd() == -1);
      std::vector<std::byte> bytes(store.content.size());
      REQUIRE(composed->read(0, bytes).ok());
      CHECK(as_text(bytes) == store.content);
    }
    REQUIRE(told.wait_for(ino));
    const auto file = must(vfs->open(ino));
    REQUIRE(file->backing_fd() >= 0);
    CHECK(read_all(file->backing_fd(), store.content.size()) == store.content);
    vfs->stop_assembling();
  }
}

TEST_CASE("fsck verifies assembled files as packs, and deletes a damaged one") {
  for (const bool damaged : {false, true}) {
    Derived store;
    store.assemble_under(boot_id(), damaged);
    const auto check = [&] { return must(store.store->fsck({}, content_decoder(), no_progress())); };
    const FsckReport report = check();
    CHECK(report.clean() == !damaged);
    CHECK(stat_file(store.pack()).ok() == !damaged);
    if (!damaged) continue;
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].find(store.pack()) != std::string::npos);
    CHECK(report.problems[0].find("deleted") != std::string::npos);
    CHECK(check().clean());
    CHECK(store.assembled()->usage().files == 0);
  }
}

}  // namespace weft::testing

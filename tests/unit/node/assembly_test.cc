#include "node/assembly.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/sys.h"
#include "fixture.h"
#include "node/assembled_dir.h"
#include "node/fill.h"
#include "weft/vfs.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

// 8 MiB in 8 tensors; `seed` decides the first two, the others are the same in all.
void write_variant(const std::string& directory, std::uint64_t seed) {
  std::vector<NamedTensor> tensors;
  for (unsigned i = 0; i < 8; ++i)
    tensors.push_back(
        {"layer." + std::to_string(i), "F32", {512, 512}, random_bytes(kMiB, i < 2 ? seed * 100 + i : i)});
  write_file(directory + "/model.safetensors", safetensors_file(tensors));
}

// A store with a model in one pack, and one derived from it.
struct Derived : Fixture {
  Derived() {
    write_variant(dir / "base", 1);
    write_variant(dir / "derived", 2);
    publish({dir / "base"}, "base");
    row = publish({dir / "derived"}, "derived").outcome.version;
    content = read_text(dir / "derived/model.safetensors");
    std::filesystem::remove_all(dir / "store/cache/assembled");  // where the file system shares blocks
    const auto version = load_version(*store, row);
    REQUIRE(version.ok());
    source = assembled_source(version->tree->manifest().files[0], "derived@1");
  }
  AssembledDir assembled(std::optional<std::uint64_t> bytes_max = {}) const {
    auto opened = AssembledDir::open(store->path(), bytes_max);
    REQUIRE(opened.ok());
    return std::move(opened).value();
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

// Waits for inodes to be told of.
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

}  // namespace

TEST_CASE("an assembled file is byte for byte the published one") {
  Derived store;
  const AssembledDir dir = store.assembled();
  AssemblyCounts counts;
  REQUIRE(assemble_now(*store.store, dir, store.source, 0, UINT64_MAX, never, counts).ok());
  CHECK(counts.made == 1);
  CHECK(counts.copied_bytes == store.content.size());
  const auto fd = dir.find(store.source.key, store.source.size);
  REQUIRE(fd.ok());
  CHECK(read_all(fd->get(), store.content.size()) == store.content);
  CHECK(assemble_now(*store.store, dir, store.source, 0, UINT64_MAX, never, counts).error().code == Errc::exists);
}

TEST_CASE("what cannot be assembled leaves nothing") {
  Derived store;
  AssemblyCounts counts;
  const auto attempt = [&](const AssembledDir& dir, const std::function<bool()>& cancelled) {
    return assemble_now(*store.store, dir, store.source, 0, UINT64_MAX, cancelled, counts).error().code;
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
  CHECK(store.assembled().usage().files == 0);
  CHECK(store.assembled().usage().parts == 0);
  CHECK(counts.made == 0);
}

TEST_CASE("a composed file that is read gets an assembled one") {
  Derived store;
  Told told;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, told.teller());
  const Ino ino = file_ino(*vfs, "derived");
  {
    const auto composed = vfs->open(ino);
    REQUIRE(composed.ok());
    CHECK((*composed)->backing_fd() == -1);
    CHECK_FALSE(vfs->assembled(ino));
    std::vector<std::byte> bytes(store.content.size());
    REQUIRE((*composed)->read(0, bytes).ok());
    CHECK(as_text(bytes) == store.content);
    REQUIRE(told.wait_for(ino));
    CHECK(vfs->assembled(ino));
    CHECK((*composed)->backing_fd() == -1);  // stays as it was opened
  }
  const auto place = vfs->place(ino);
  REQUIRE(place.ok());
  CHECK(place->name == "model.safetensors");
  CHECK(vfs->lookup(place->dir, place->name)->ino == ino);
  auto file = vfs->open(ino);
  REQUIRE(file.ok());
  REQUIRE((*file)->backing_fd() >= 0);
  CHECK(read_all((*file)->backing_fd(), store.content.size()) == store.content);
  // In use: it stays, also when all of it is to go; then it goes.
  REQUIRE(set_assembly_max(*store.store, 0).ok());
  CHECK(assembled_usage(*store.store).files == 1);
  file->reset();
  REQUIRE(set_assembly_max(*store.store, 0).ok());
  CHECK(assembled_usage(*store.store).files == 0);
  const auto again = vfs->open(ino);
  REQUIRE(again.ok());
  CHECK((*again)->backing_fd() == -1);
  vfs->stop_assembling();
}

TEST_CASE("a reader who is at it is not disturbed: the file is made when they close it") {
  Derived store;
  if (sharing_block_bytes(store.store->path()) != 0) return;  // made at once, it costs nothing
  Told told;
  const auto vfs = Vfs::make(*store.store, VfsOptions{});
  vfs->assemble(AssemblyOptions{}, told.teller());
  const Ino ino = file_ino(*vfs, "derived");
  const auto waiting = [&] {
    const auto status = must(vfs->open(kStatusIno));
    std::vector<std::byte> text(status->size());
    REQUIRE(status->read(0, text).ok());
    return as_text(text).find("\"waiting\": 0") == std::string_view::npos;
  };
  {
    const auto composed = must(vfs->open(ino));
    std::vector<std::byte> bytes(store.content.size() / 4);
    REQUIRE(composed->read(0, bytes).ok());
    CHECK(composed->in_memory(bytes.size(), bytes.size()).ok());
    CHECK_FALSE(waiting());
  }
  REQUIRE(told.wait_for(ino));
  CHECK(vfs->assembled(ino));
  vfs->stop_assembling();
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

TEST_CASE("where nothing can be assembled files are read as before, and the status says why") {
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
  const auto pinned = pin_version(*store.store, "derived", no_progress());
  REQUIRE(pinned.ok());
  CHECK(pinned->files == 1);
  CHECK(pinned->bytes == store.content.size());
  CHECK(assembled_usage(*store.store).pinned_files == 1);
  REQUIRE(set_assembly_max(*store.store, 1).ok());
  CHECK(assembled_usage(*store.store).files == 1);
  SUBCASE("unpinned") {
    REQUIRE(unpin_version(*store.store, "derived@1").ok());
    REQUIRE(set_assembly_max(*store.store, 1).ok());
  }
  SUBCASE("removed") {
    CHECK(sweep_assembled(*store.store, false)->files == 0);
    REQUIRE(store.store->remove_version("derived", 1).ok());
    CHECK(sweep_assembled(*store.store, true)->files == 1);
    CHECK(sweep_assembled(*store.store, false)->bytes == store.content.size());
  }
  CHECK(assembled_usage(*store.store).files == 0);
  CHECK(pin_version(*store.store, "base", no_progress())->files == 0);
  CHECK(pin_version(*store.store, "nobody", no_progress()).error().code == Errc::not_found);
}

TEST_CASE("what does not fit is not pinned") {
  Derived store;
  REQUIRE(set_assembly_max(*store.store, kMiB).ok());
  CHECK(pin_version(*store.store, "derived", no_progress()).error().code == Errc::no_space);
  for (const auto& entry : std::filesystem::directory_iterator(store.store->path() + "/cache/assembled"))
    CHECK_FALSE(entry.path().string().ends_with(".pin"));
}

}  // namespace weft::testing

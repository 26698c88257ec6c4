#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "fakes/node_fixture.h"
#include "os/sys.h"

using weft::Errc;
using weft::testing::Fixture;
using weft::testing::HookProgress;
using weft::testing::read_text;
using weft::testing::write_file;
using weft::testing::write_model;

namespace fs = std::filesystem;

namespace {

std::map<std::string, std::string> tree_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (!entry.is_directory()) files[fs::relative(entry.path(), directory)] = read_text(entry.path());
  return files;
}

weft::Result<weft::ExportReport> export_to(Fixture& f, const std::string& spec, const std::string& directory) {
  return weft::export_version(*f.store, weft::no_resolver(), spec, directory, weft::no_progress());
}

// Flips one bit in the middle of each pack.
void damage_packs(const std::string& store) {
  for (const auto& entry : fs::directory_iterator(store + "/packs")) {
    if (entry.path().extension() != ".pack" || entry.file_size() == 0) continue;
    auto fd = weft::open_file(entry.path(), O_RDWR);
    REQUIRE(fd.ok());
    std::byte byte{};
    REQUIRE(weft::read_exact(fd->get(), entry.file_size() / 2, {&byte, 1}, "pack").ok());
    byte ^= std::byte{1};
    REQUIRE(weft::write_exact(fd->get(), entry.file_size() / 2, {&byte, 1}, "pack").ok());
  }
}

}  // namespace

TEST_CASE("an export is the source, byte for byte") {
  Fixture f;
  write_model(f.dir / "a", 1);
  write_model(f.dir / "b", 2);
  write_file(f.dir / "b/large.bin", weft::testing::as_text(weft::testing::random_bytes(5'000'001, 7)));
  f.publish({f.dir / "a"}, "m");
  auto published = f.publish({f.dir / "b"}, "m");
  auto first = export_to(f, "m@1", f.dir / "out1");
  if (!first.ok()) FAIL(first.error().message);
  HookProgress progress;
  auto second = weft::export_version(*f.store, weft::no_resolver(), "m", f.dir / "out2", progress);
  if (!second.ok()) FAIL(second.error().message);
  CHECK(tree_of(f.dir / "out1") == tree_of(f.dir / "a"));
  CHECK(tree_of(f.dir / "out2") == tree_of(f.dir / "b"));
  CHECK(second->files == 4);
  CHECK(second->bytes == published.logical_bytes);
  CHECK(progress.bytes_done == second->bytes);
}

TEST_CASE("an export goes into an empty directory or makes one, and touches no other") {
  Fixture f;
  write_model(f.dir / "a", 1);
  f.publish({f.dir / "a"}, "m");
  REQUIRE(weft::make_directory(f.dir / "empty").ok());
  CHECK(export_to(f, "m", f.dir / "empty").ok());
  auto full = export_to(f, "m", f.dir / "empty");
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().code == Errc::exists);
  CHECK(full.error().message.find("expected an empty directory, got 3 entries") != std::string::npos);
  CHECK(export_to(f, "m", f.dir / "no/parent").error().code == Errc::not_found);
  CHECK_FALSE(export_to(f, "m", f.dir / "a/empty.txt").ok());
  CHECK(export_to(f, "m@9", f.dir / "out").error().code == Errc::not_found);
  CHECK_FALSE(fs::exists(f.dir / "out"));
}

TEST_CASE("damaged bytes are not handed out, and what a failed export made is gone") {
  Fixture f;
  write_model(f.dir / "a", 1);
  write_file(f.dir / "a/large.bin", weft::testing::as_text(weft::testing::random_bytes(3'000'000, 7)));
  f.publish({f.dir / "a"}, "m");
  damage_packs(f.dir / "store");
  auto report = export_to(f, "m", f.dir / "out");
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().code == Errc::corrupt);
  CHECK_FALSE(fs::exists(f.dir / "out"));
  REQUIRE(weft::make_directory(f.dir / "empty").ok());
  CHECK_FALSE(export_to(f, "m", f.dir / "empty").ok());
  CHECK(fs::is_empty(f.dir / "empty"));
}

TEST_CASE("a cancelled export removes what it made") {
  Fixture f;
  write_model(f.dir / "a", 1);
  f.publish({f.dir / "a"}, "m");
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) { progress.cancel = what == "writing model.safetensors"; };
  auto report = weft::export_version(*f.store, weft::no_resolver(), "m", f.dir / "out", progress);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().code == Errc::cancelled);
  CHECK_FALSE(fs::exists(f.dir / "out"));
}

namespace {

// Replaces each directory below `directory` by a link to `to`, as its owner can at any time.
void swap_directories(const std::string& directory, const std::string& to) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_directory()) entries.push_back(entry.path());
  for (const auto& entry : entries) {
    fs::rename(entry, directory + "-aside-" + std::to_string(weft::now_ns()));
    fs::create_directory_symlink(to, entry);
  }
}

}  // namespace

TEST_CASE("an export whose directories are swapped for links writes and removes nothing elsewhere") {
  Fixture f;
  write_model(f.dir / "a", 1);
  write_file(f.dir / "a/sub/deep/file.txt", "published");
  write_file(f.dir / "a/sub/z.txt", "published");
  f.publish({f.dir / "a"}, "m");
  write_file(f.dir / "elsewhere/file.txt", "another's");
  write_file(f.dir / "elsewhere/config.json", "another's");
  write_file(f.dir / "elsewhere/deep/file.txt", "another's");
  write_file(f.dir / "elsewhere/sub/deep/file.txt", "another's");
  const auto before = tree_of(f.dir / "elsewhere");
  for (bool cancel : {true, false}) {
    REQUIRE(weft::make_directory(f.dir / "out").ok());
    HookProgress progress;
    progress.on_phase = [&](std::string_view what) {
      if (what != "writing sub/z.txt") return;
      swap_directories(f.dir / "out", f.dir / "elsewhere");
      progress.cancel = cancel;
    };
    static_cast<void>(weft::export_version(*f.store, weft::no_resolver(), "m", f.dir / "out", progress));
    CHECK(tree_of(f.dir / "elsewhere") == before);
    fs::remove_all(f.dir / "out");
  }
}

TEST_CASE("a failed export removes only its own inodes") {
  Fixture f;
  write_model(f.dir / "a", 1);
  f.publish({f.dir / "a"}, "m");
  REQUIRE(weft::make_directory(f.dir / "out").ok());
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) {
    if (what != "writing model.safetensors") return;
    for (const auto& entry : fs::recursive_directory_iterator(f.dir / "out")) {
      if (entry.path().filename() != "config.json") continue;
      fs::rename(entry.path(), f.dir / "moved");
      write_file(entry.path(), "another's");
      break;
    }
    progress.cancel = true;
  };
  CHECK(weft::export_version(*f.store, weft::no_resolver(), "m", f.dir / "out", progress).error().code ==
        Errc::cancelled);
  const auto left = tree_of(f.dir / "out");
  REQUIRE(left.size() == 1);
  CHECK(left.begin()->second == "another's");
}

TEST_CASE("an export appears at once, when it is complete") {
  Fixture f;
  write_model(f.dir / "a", 1);
  f.publish({f.dir / "a"}, "m");
  HookProgress progress;
  int looks = 0;
  progress.on_phase = [&](std::string_view) {
    ++looks;
    for (const auto& entry : fs::directory_iterator(f.dir / "out"))
      CHECK(entry.path().filename().string().starts_with(".weft-export-"));
  };
  CHECK(weft::export_version(*f.store, weft::no_resolver(), "m", f.dir / "out", progress).ok());
  CHECK(looks > 3);
  CHECK(tree_of(f.dir / "out") == tree_of(f.dir / "a"));
}

TEST_CASE("an export that cannot be published takes back what it moved into place") {
  Fixture f;
  write_model(f.dir / "a", 1);
  f.publish({f.dir / "a"}, "m");
  REQUIRE(weft::make_directory(f.dir / "out").ok());
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) {
    if (what == "writing model.safetensors") write_file(f.dir / "out/model.safetensors", "another's");
  };
  auto report = weft::export_version(*f.store, weft::no_resolver(), "m", f.dir / "out", progress);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().code == Errc::exists);
  CHECK(tree_of(f.dir / "out") == std::map<std::string, std::string>{{"model.safetensors", "another's"}});
}

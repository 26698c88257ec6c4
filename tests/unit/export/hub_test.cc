#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "base/sha256.h"
#include "export/hub_place.h"
#include "fakes/node_fixture.h"
#include "os/sys.h"

using weft::Errc;
using weft::testing::Fixture;
using weft::testing::HookProgress;
using weft::testing::must;
using weft::testing::read_text;
using weft::testing::write_file;
using weft::testing::write_model;

namespace fs = std::filesystem;

namespace {

weft::Result<weft::HubExportReport> export_to(Fixture& f, const std::string& spec) {
  return weft::export_to_hub(*f.store, weft::no_resolver(), spec, f.dir / "hub", weft::no_progress());
}

std::string commit_of(Fixture& f, const std::string& spec) {
  return weft::commit_of(must(f.resolve(spec)));
}

std::size_t entries_of(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

// Publishes two versions of org/m, which differ in one file.
void publish_two(Fixture& f) {
  write_model(f.dir / "a", 1);
  write_file(f.dir / "a/sub/deep/file.txt", "in a directory");
  write_file(f.dir / "a/note.txt", "first");
  f.publish({f.dir / "a"}, "org/m");
  write_file(f.dir / "a/note.txt", "second");
  f.publish({f.dir / "a"}, "org/m");
}

}  // namespace

TEST_CASE("a version in a hub's cache is a snapshot of relative links to blobs, with its revisions") {
  Fixture f;
  publish_two(f);
  const auto report = must(export_to(f, "org/m@2"));
  const std::string top = f.dir / "hub/models--org--m";
  const std::string commit = commit_of(f, "org/m@2");
  CHECK(report.repository == top);
  CHECK(report.commit == commit);
  CHECK(report.refs == std::vector<std::string>{"main", "2"});
  CHECK(read_text(top + "/refs/main") == commit);
  CHECK(read_text(top + "/refs/2") == commit);
  const std::string snapshot = top + "/snapshots/" + commit;
  for (const auto& entry : fs::recursive_directory_iterator(f.dir / "a")) {
    if (entry.is_directory()) continue;
    const fs::path shown = snapshot / fs::relative(entry.path(), f.dir / "a");
    CHECK(read_text(shown) == read_text(entry.path()));
    CHECK(fs::read_symlink(shown).is_relative());
    CHECK(fs::read_symlink(shown).filename().string().size() == 64);
  }
  CHECK(entries_of(top) == 3);  // the hidden directory is gone
}

TEST_CASE("a second version shares the blobs of the first, and main stays with the store's main") {
  Fixture f;
  publish_two(f);
  must(export_to(f, "org/m@2"));
  const std::string top = f.dir / "hub/models--org--m";
  const std::size_t blobs = entries_of(top + "/blobs");
  const auto report = must(export_to(f, "org/m@1"));
  CHECK(entries_of(top + "/blobs") == blobs + 1);
  CHECK(report.reused_files + 1 == report.written.files);
  CHECK(report.refs == std::vector<std::string>{"1"});
  CHECK(read_text(top + "/refs/main") == commit_of(f, "org/m@2"));
  CHECK(entries_of(top + "/snapshots") == 2);
}

TEST_CASE("an old version alone in a cache is main there, until the store's main comes") {
  Fixture f;
  publish_two(f);
  const auto report = must(export_to(f, "org/m@1"));
  CHECK(report.refs == std::vector<std::string>{"main", "1"});
  must(export_to(f, "org/m@2"));
  CHECK(read_text(f.dir / "hub/models--org--m/refs/main") == commit_of(f, "org/m@2"));
}

TEST_CASE("a source commit is the snapshot's name") {
  Fixture f;
  write_model(f.dir / "a", 1);
  weft::ImportOptions options;
  options.paths = {f.dir / "a"};
  options.name = "m";
  options.source.commit = std::string(weft::kCommitDigits, 'e');
  must(weft::testing::import_paths(*f.store, options, weft::no_progress()));
  CHECK(must(export_to(f, "m")).commit == options.source.commit);
  CHECK(fs::exists(f.dir / "hub/models--m/snapshots/" + options.source.commit + "/empty.txt"));
}

TEST_CASE("a snapshot that is there needs all files, and stays as it is") {
  Fixture f;
  publish_two(f);
  must(export_to(f, "org/m"));
  CHECK(must(export_to(f, "org/m")).reused_files == must(export_to(f, "org/m")).written.files);
  const std::string snapshot = f.dir / "hub/models--org--m/snapshots/" + commit_of(f, "org/m");
  fs::remove(snapshot + "/sub/deep/file.txt");
  const auto missing = export_to(f, "org/m");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Errc::exists);
  CHECK(missing.error().message.find("sub/deep/file.txt: expected a link to the blob") != std::string::npos);
  write_file(snapshot + "/sub/deep/file.txt", "another's");
  CHECK(export_to(f, "org/m").error().code == Errc::exists);
  CHECK(read_text(snapshot + "/sub/deep/file.txt") == "another's");
  fs::remove_all(snapshot);
  CHECK(export_to(f, "org/m").ok());
}

TEST_CASE("a blob of another size is refused") {
  Fixture f;
  write_file(f.dir / "a/one.txt", "1");
  f.publish({f.dir / "a"}, "m");
  const std::string blob =
      f.dir / "hub/models--m/blobs/" + weft::to_hex(weft::sha256(std::as_bytes(std::span("1", 1))));
  write_file(blob, "12");
  const auto report = export_to(f, "m");
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message.find("expected a file of 1 bytes") != std::string::npos);
  CHECK(read_text(blob) == "12");
}

TEST_CASE("a failed export to a hub's cache leaves no snapshot and none of its directories") {
  Fixture f;
  publish_two(f);
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) { progress.cancel = what == "writing note.txt"; };
  const auto cancelled = weft::export_to_hub(*f.store, weft::no_resolver(), "org/m", f.dir / "hub", progress);
  CHECK(cancelled.error().code == Errc::cancelled);
  CHECK_FALSE(fs::exists(f.dir / "hub"));
  f.publish({f.dir / "a"}, "a/b/c");
  CHECK(export_to(f, "a/b/c").error().code == Errc::invalid);
  CHECK_FALSE(fs::exists(f.dir / "hub"));
}

TEST_CASE("the name of a blob whose digest is unknown comes from its bytes") {
  weft::testing::TempDir dir;
  const std::string text(3'000'000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  {
    const auto place = must(weft::HubPlace::open(dir / "hub", {"models--m", std::string(40, 'a'), {"1"}}));
    const weft::ExportedFile file{"sub/x.bin", text.size()};
    CHECK_FALSE(must(place->reuse(file)));
    {
      const weft::Fd out = must(place->create(file));
      REQUIRE(weft::write_exact(out.get(), 0, bytes, "x").ok());
      REQUIRE(place->complete(file, out).ok());
    }
    const weft::ExportedFile same{"sub/y.bin", text.size(), 0, weft::sha256(bytes)};
    CHECK(must(place->reuse(same)));
    REQUIRE(place->make_directory("none/here").ok());
    REQUIRE(place->publish().ok());
  }
  const std::string snapshot = dir / "hub/models--m/snapshots/" + std::string(40, 'a');
  CHECK(read_text(snapshot + "/sub/x.bin") == text);
  CHECK(fs::equivalent(snapshot + "/sub/x.bin", snapshot + "/sub/y.bin"));
  CHECK(fs::read_symlink(snapshot + "/sub/x.bin") == "../../../blobs/" + weft::to_hex(weft::sha256(bytes)));
  CHECK(fs::is_empty(snapshot + "/none/here"));
}

TEST_CASE("the hidden directory of a killed export goes, and that of a running one stays") {
  Fixture f;
  publish_two(f);
  must(export_to(f, "org/m@1"));
  const std::string top = f.dir / "hub/models--org--m";
  for (const std::string name : {"killed", "running", "unknown"})
    write_file(top + "/.weft-export-" + name + "/written", "bytes");
  write_file(top + "/.weft-export-killed/snapshot/sub/file", "bytes");
  write_file(top + "/.weft-export-killed/lock", "");
  write_file(top + "/.weft-export-running/lock", "");
  const weft::Fd running = must(weft::open_file(top + "/.weft-export-running/lock", O_RDWR));
  must(weft::lock_fd(running.get(), weft::LockKind::exclusive, weft::LockWait::no, "running"));
  fs::create_directory(f.dir / "other");
  write_file(f.dir / "other/lock", "");
  fs::create_directory_symlink(f.dir / "other", top + "/.weft-export-link");
  must(export_to(f, "org/m@2"));
  CHECK_FALSE(fs::exists(top + "/.weft-export-killed"));
  CHECK(fs::exists(top + "/.weft-export-running/written"));
  CHECK(fs::exists(top + "/.weft-export-unknown/written"));
  CHECK(fs::exists(f.dir / "other/lock"));
}

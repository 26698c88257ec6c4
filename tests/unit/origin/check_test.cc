#include "origin/check.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "diskformat/catalog_record.h"
#include "fakes/node_fixture.h"
#include "origin/deletions.h"
#include "origin/stage.h"
#include "os/sys.h"

namespace weft::testing {
namespace {

// A node and its origin.
struct Checked final : CollectionOrder, RepairSource {
  Fixture node;
  TempDir dir;
  std::vector<VersionRow> rows;
  bool has_blobs = true;

  Result<std::vector<VersionRow>> versions() override { return rows; }
  Result<std::vector<std::byte>> manifest(const VersionRow& row) override {
    WEFT_TRY(const auto reader, node.store->open_manifest(row.manifest));
    return std::vector<std::byte>(reader->bytes().begin(), reader->bytes().end());
  }
  Result<bool> is_live(const VersionRow&) override { return true; }
  OriginCollection latest() override { return {}; }
  Status announce(const OriginCollection& /*next*/) override { return {}; }
  Result<OpenPlace> blob(const ContentId& id, bool /*damaged*/, Progress& /*progress*/) override {
    if (!has_blobs) return Error{Errc::not_found, "no node has it"};
    return node.store->open_blob(id);
  }
  Result<CatalogEvents> events(std::uint64_t from) override {
    CatalogEvents events;
    if (from == 0) events.events.assign(rows.begin(), rows.end());
    events.end = 1;
    return events;
  }

  OriginDir open() const {
    auto opened = OriginDir::open(dir.path(), "cluster");
    REQUIRE(opened.ok());
    return std::move(opened).value();
  }
  VersionRow publish_and_stage(std::uint64_t seed, const std::string& name) {
    write_model(node.dir / name, seed);
    rows.push_back(node.publish({node.dir / name}, name).outcome.version);
    SearchedFor searched_for;
    REQUIRE(stage_version(RevocableStore(*node.store), open(), rows.back(), no_progress(), searched_for).ok());
    return rows.back();
  }
  OriginFsckReport check(bool repair = false) {
    const auto report = check_origin_files(open(), *this, repair ? this : nullptr, no_progress());
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    return *report;
  }
  // The only file of a folder with this ending.
  std::filesystem::path file(const std::string& folder, const std::string& ending = "") const {
    for (const auto& entry : std::filesystem::directory_iterator(dir.path() + "/" + folder))
      if (entry.path().string().ends_with(ending)) return entry.path();
    FAIL("no such file");
    return {};
  }
};

// Does something when a check begins a phase.
class AtPhase final : public Progress {
 public:
  AtPhase(std::string_view phase, std::function<void()> act) : phase_(phase), act_(std::move(act)) {}
  void total(std::uint64_t /*bytes*/) override {}
  void advance(std::uint64_t /*bytes*/) override {}
  void phase(std::string_view what) override {
    if (what == phase_) act_();
  }
  bool cancelled() const override { return false; }

 private:
  const std::string phase_;
  const std::function<void()> act_;
};

void flip(const std::filesystem::path& path, std::uint64_t at) {
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

}  // namespace

TEST_CASE("an origin without faults is clean, and a version that is not there yet is no fault") {
  Checked test;
  test.publish_and_stage(1, "model");
  VersionRow waiting = test.rows.back();
  waiting.number = 2;
  waiting.manifest.bytes.fill(7);
  test.rows.push_back(waiting);
  const auto report = test.check();
  CHECK(report.problems.empty());
  CHECK(report.versions == 1);
  CHECK(report.waiting == 1);
  CHECK(report.packs == 1);
  CHECK(report.manifests == 1);
  CHECK(report.records == 1);
  CHECK(report.bytes_read > 0);
}

TEST_CASE("a version whose content comes during the check, before its record, waits") {
  Checked test;
  test.publish_and_stage(1, "model");
  const auto manifest = test.file("manifests"), places = test.file("places");
  const std::filesystem::path aside = test.dir.path() + "/tmp";
  std::filesystem::remove(test.file("journal"));
  std::filesystem::rename(manifest, aside / "manifest");
  std::filesystem::rename(places, aside / "places");
  AtPhase progress("reading packs", [&] {
    std::filesystem::rename(aside / "manifest", manifest);
    std::filesystem::rename(aside / "places", places);
  });
  const auto report = check_origin_files(test.open(), test, nullptr, progress);
  REQUIRE(report.ok());
  CHECK(report->waiting == 1);
  CHECK(report->problems.empty());
  CHECK(test.check().problems.size() == 1);
}

TEST_CASE("each kind of damage is found, repaired once, and gone afterwards") {
  const std::pair<const char*, const char*> files[] = {
      {"packs", ".pack"}, {"packs", ".toc"}, {"manifests", ""}, {"places", ""}, {"journal", ""}};
  for (const auto& [folder, ending] : files)
    for (const bool gone : {false, true}) {
      CAPTURE(folder);
      CAPTURE(ending);
      CAPTURE(gone);
      Checked test;
      test.publish_and_stage(1, "model");
      const auto path = test.file(folder, ending);
      gone ? static_cast<void>(std::filesystem::remove(path)) : flip(path, std::filesystem::file_size(path) / 2);
      const auto found = test.check();
      CHECK(found.problems.size() == 1);
      CHECK(found.repaired.empty());
      const auto repaired = test.check(true);
      CHECK_MESSAGE(repaired.problems.empty(), (repaired.problems.empty() ? "" : repaired.problems.front()));
      CHECK(repaired.repaired.size() == 1);
      CHECK(test.check().problems.empty());
      CHECK(test.open().holds(test.rows.front().manifest));
      CHECK(std::filesystem::is_empty(test.dir.path() + "/tmp"));
    }
}

TEST_CASE("a damaged blob comes back for a version whose places are damaged too, or that was removed") {
  for (const bool removed : {false, true}) {
    CAPTURE(removed);
    Checked test;
    const VersionRow row = test.publish_and_stage(1, "model");
    const auto pack = test.file("packs", ".pack"), places = test.file("places");
    flip(pack, std::filesystem::file_size(pack) / 2);
    if (removed) test.rows.front().removed = true;
    if (!removed) flip(places, std::filesystem::file_size(places) / 2);
    const auto report = test.check(true);
    CHECK_MESSAGE(report.problems.empty(), (report.problems.empty() ? "" : report.problems.front()));
    test.rows.front().removed = false;
    CHECK(test.check().problems.empty());
    CHECK(test.open().holds(row.manifest));
  }
}

TEST_CASE("a pack of which both files are gone comes back") {
  Checked test;
  test.publish_and_stage(1, "model");
  std::filesystem::remove(test.file("packs", ".pack"));
  std::filesystem::remove(test.file("packs", ".toc"));
  CHECK(test.check().problems.size() == 1);
  CHECK(test.check(true).problems.empty());
  CHECK(test.check().problems.empty());
}

TEST_CASE("a pack that a collection deletes while a check reads is neither damaged nor written again") {
  for (const bool removed : {true, false}) {
    Checked test;
    const VersionRow row = test.publish_and_stage(1, "model");
    AtPhase reads("reading packs", [&] {
      const OriginDir origin = test.open();
      FreedFiles freed;
      freed.sequence = 1;
      freed.packs = *origin.packs();
      REQUIRE(put_freed(*origin.directory(), freed).ok());
      if (removed) REQUIRE(remove_manifest(*origin.directory(), {row.manifest, 0}).ok());
      for (const PackId pack : freed.packs) REQUIRE(remove_pack(*origin.directory(), pack).ok());
    });
    const auto report = check_origin_files(test.open(), test, &test, reads);
    REQUIRE(report.ok());
    CHECK(report->damaged == (removed ? 0 : 1));
    CHECK(test.open().packs()->empty() == removed);
  }
}

TEST_CASE("without another copy a fault stays, its files stay as they were, and the reason is named") {
  Checked test;
  test.publish_and_stage(1, "model");
  test.has_blobs = false;
  const auto path = test.file("packs", ".pack");
  flip(path, std::filesystem::file_size(path) / 2);
  const auto report = test.check(true);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems.front().find("not repaired: no node has it") != std::string::npos);
  test.has_blobs = true;
  CHECK(test.check(true).problems.empty());
}

}  // namespace weft::testing

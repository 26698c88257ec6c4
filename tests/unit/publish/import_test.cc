#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "fakes/node_fixture.h"
#include "os/sys.h"
#include "publish/gather.h"

using weft::Errc;
using weft::ImportOptions;
using weft::testing::Fixture;
using weft::testing::HookProgress;
using weft::testing::must;
using weft::testing::write_file;
using weft::testing::write_model;

namespace {

void refuse(const weft::Result<weft::ImportReport>& report, Errc code, const std::string& part) {
  REQUIRE_FALSE(report.ok());
  CAPTURE(report.error().message);
  CHECK(report.error().code == code);
  CHECK(report.error().message.find(part) != std::string::npos);
  CHECK(report.error().message.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("a publish reports what it brought, and progress ends at the sum of sizes") {
  Fixture f;
  write_model(f.dir / "m", 1);
  ImportOptions options;
  options.paths = {f.dir / "m"};
  options.name = "org/model";
  options.tags = {"prod", "prod"};
  options.message = "first\nversion";
  options.metrics = {{"accuracy", "0.9"}};
  HookProgress progress;
  auto report = weft::testing::import_paths(*f.store, options, progress);
  if (!report.ok()) FAIL(report.error().message);
  CHECK(report->outcome.made);
  CHECK(report->files == 3);
  CHECK(report->tensors == 3);
  CHECK(report->outcome.new_bytes == report->logical_bytes);
  CHECK(report->outcome.shared_bytes == 0);
  CHECK(progress.bytes_total == report->logical_bytes);
  CHECK(progress.bytes_done == report->logical_bytes);
  auto row = f.resolve("org/model@prod");
  REQUIRE(row.ok());
  CHECK(row->number == 1);
  CHECK(row->message == "first\nversion");
  CHECK(row->metrics == options.metrics);
}

TEST_CASE("the same content again makes no version, changed content shares the rest") {
  Fixture f;
  write_model(f.dir / "a", 1);
  write_model(f.dir / "b", 2);
  f.publish({f.dir / "a"}, "m");
  auto again = f.publish({f.dir / "a"}, "m");
  CHECK_FALSE(again.outcome.made);
  CHECK(again.outcome.version.number == 1);
  auto derived = f.publish({f.dir / "b"}, "m");
  CHECK(derived.outcome.made);
  CHECK(derived.outcome.version.number == 2);
  CHECK(derived.outcome.new_bytes == 16384);
  CHECK(derived.outcome.new_bytes + derived.outcome.shared_bytes == derived.logical_bytes);
  auto other_name = f.publish({f.dir / "b"}, "elsewhere");
  CHECK(other_name.outcome.made);
  CHECK(other_name.outcome.new_bytes == 0);
}

TEST_CASE("parents are resolved, each once") {
  Fixture f;
  write_model(f.dir / "a", 1);
  write_model(f.dir / "b", 2);
  f.publish({f.dir / "a"}, "base");
  ImportOptions options;
  options.paths = {f.dir / "b"};
  options.name = "derived";
  options.parents = {"base", "base@1", "base@latest"};
  auto report = weft::testing::import_paths(*f.store, options, weft::no_progress());
  REQUIRE(report.ok());
  REQUIRE(report->outcome.version.parents.size() == 1);
  CHECK(report->outcome.version.parents[0].model == "base");
  CHECK(report->outcome.version.parents[0].number == 1);
  options.parents = {"base@7"};
  refuse(weft::testing::import_paths(*f.store, options, weft::no_progress()), Errc::not_found,
         "parent: base@7 is not there");
}

TEST_CASE("the description of a version is checked before any file is read") {
  Fixture f;
  ImportOptions options;
  options.paths = {f.dir / "not there"};
  options.name = "m";
  std::string before = f.state();
  auto refuse_options = [&](Errc code, const std::string& part) {
    refuse(weft::testing::import_paths(*f.store, options, weft::no_progress()), code, part);
  };
  SUBCASE("name") {
    options.name = "../m";
    refuse_options(Errc::invalid, "../m");
  }
  SUBCASE("tag that is a number") {
    options.tags = {"3"};
    refuse_options(Errc::invalid, "3");
  }
  SUBCASE("tag latest") {
    options.tags = {"latest"};
    refuse_options(Errc::invalid, "latest");
  }
  SUBCASE("metric twice") {
    options.metrics = {{"a", "1"}, {"a", "2"}};
    refuse_options(Errc::invalid, "metric a: given twice");
  }
  SUBCASE("metric too long") {
    options.metrics = {{"a", std::string(257, '1')}};
    refuse_options(Errc::invalid, "metric a: expected at most 256 bytes, got 257");
  }
  SUBCASE("message that is no text") {
    options.message = "\xff";
    refuse_options(Errc::invalid, "message: expected UTF-8");
  }
  SUBCASE("message too long") {
    options.message = std::string(16385, 'x');
    refuse_options(Errc::invalid, "message: expected at most 16384 bytes, got 16385");
  }
  SUBCASE("nothing there") {
    refuse_options(Errc::not_found, "not there: No such file");
  }
  CHECK(f.state() == before);
}

TEST_CASE("a malformed file is refused by name, and the store is as it was") {
  Fixture f;
  write_model(f.dir / "good", 1);
  f.publish({f.dir / "good"}, "m");
  std::string before = f.state();
  write_model(f.dir / "bad", 2);
  std::string bytes = weft::testing::read_text(f.dir / "bad/model.safetensors");
  write_file(f.dir / "bad/model.safetensors", bytes.substr(0, bytes.size() - 1));
  refuse(f.import({f.dir / "bad"}, "m"), Errc::invalid, "bad/model.safetensors");
  CHECK(f.state() == before);
}

TEST_CASE("a shard index is refused without its shards, and kept with a remark if it names the wrong shard") {
  Fixture f;
  write_file(f.dir / "m/1.safetensors",
             weft::testing::safetensors_file({{"a", "U8", {1}, weft::testing::random_bytes(1, 1)}}));
  std::string index = f.dir / "m/model.safetensors.index.json";
  write_file(index, R"({"metadata": {}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  refuse(f.import({f.dir / "m"}, "m"), Errc::invalid, "expected the shard 2.safetensors in its directory");
  write_file(index, R"({"metadata": {}, "weight_map": {"a": "1.safetensors", "b": "1.safetensors"}})");
  const std::string remark = "expected tensor b in 1.safetensors, got none of that name";
  CHECK(must(f.import({f.dir / "m"}, "m")).remarks ==
        std::vector<std::string>{"model.safetensors.index.json: " + remark});
  const auto kept = must(weft::load_manifest(*f.store, weft::no_resolver(), must(f.resolve("m"))));
  CHECK(weft::remark_on(kept.files.back()) == remark);
  CHECK(kept.files.front().tensors.size() == 1);
  write_file(index, R"({"metadata": {}, "weight_map": {"a": "1.safetensors"}})");
  CHECK(must(f.import({f.dir / "m"}, "m")).remarks.empty());
}

TEST_CASE("a file whose tensor names make no file names is kept without tensors") {
  Fixture f;
  const std::string lengthy(252, 'x');
  const std::string layer = std::string(248, 'l') + ".x";
  for (const std::string& name : {lengthy, layer}) {
    CAPTURE(name);
    write_file(f.dir / "m/1.safetensors",
               weft::testing::safetensors_file({{name, "U8", {1}, weft::testing::random_bytes(1, 1)}}));
    write_file(f.dir / "m/2.safetensors",
               weft::testing::safetensors_file({{"a", "U8", {1}, weft::testing::random_bytes(1, 1)}}));
    must(f.import({f.dir / "m"}, "m"));
    const auto kept = must(weft::load_manifest(*f.store, weft::no_resolver(), must(f.resolve("m"))));
    CHECK(kept.files[0].tensors.empty());
    CHECK(weft::why_no_tensors(kept.files[0]).find("255") != std::string_view::npos);
    CHECK(weft::why_no_tensors(kept.files[0]).find("1.safetensors") == std::string_view::npos);
    CHECK(kept.files[1].tensors.size() == 1);
  }
}

TEST_CASE("a source that changes during the import is refused, and the store is unchanged") {
  Fixture f;
  write_model(f.dir / "m", 1);
  std::string before = f.state();
  std::string file = f.dir / "m/model.safetensors";
  HookProgress progress;
  SUBCASE("before its bytes are read") {
    progress.on_phase = [&](std::string_view what) {
      if (what == "reading 1_Pooling/config.json") write_file(file, "short");
    };
  }
  SUBCASE("to another of the same size") {
    std::string same = weft::testing::read_text(file);
    progress.on_phase = [&, same](std::string_view what) {
      if (what != "reading model.safetensors") return;
      ::usleep(20'000);  // the file system's clock is coarser than ours
      write_file(file, same);
    };
  }
  ImportOptions options;
  options.paths = {f.dir / "m"};
  options.name = "m";
  refuse(weft::testing::import_paths(*f.store, options, progress), Errc::changed, file);
  CHECK(f.state() == before);
}

TEST_CASE("a moved file that was replaced or written to during the import stays") {
  Fixture f;
  for (const char* name : {"same", "written", "replaced", "gone"}) write_file(f.dir / (std::string("m/") + name), "1");
  std::filesystem::create_symlink("same", f.dir / "m/link");
  std::filesystem::create_directory(f.dir / "m/empty");
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) {
    if (what != "making it durable") return;
    write_file(f.dir / "m/written", "12");
    write_file(f.dir / "new", "2");
    std::filesystem::rename(f.dir / "new", f.dir / "m/replaced");
    std::filesystem::remove(f.dir / "m/gone");
    write_file(f.dir / "m/later", "1");
  };
  ImportOptions options;
  options.paths = {f.dir / "m"};
  options.name = "m";
  options.take = weft::Take::move;
  const auto report = must(weft::testing::import_paths(*f.store, options, progress));
  CHECK(report.files == 5);
  std::vector<std::string> stays;
  for (const weft::MovedSource& source : report.moved)
    if (const auto gone = weft::remove_moved(source); !gone.ok()) stays.push_back(gone.error().message);
  const std::string why = ": not removed: it was replaced or written to during the import";
  CHECK(stays == std::vector<std::string>{f.dir / "m/replaced" + why, f.dir / "m/written" + why});
  CHECK(must(weft::list_directory(f.dir / "m")) == std::vector<std::string>{"later", "replaced", "written"});
}

TEST_CASE("a cancelled import leaves the store as it was") {
  Fixture f;
  write_model(f.dir / "m", 1);
  std::string before = f.state();
  for (const char* moment : {"reading headers", "reading model.safetensors"}) {
    HookProgress progress;
    progress.on_phase = [&](std::string_view what) { progress.cancel = progress.cancel || what == moment; };
    ImportOptions options;
    options.paths = {f.dir / "m"};
    options.name = "m";
    refuse(weft::testing::import_paths(*f.store, options, progress), Errc::cancelled, "");
    CHECK(f.state() == before);
  }
  f.publish({f.dir / "m"}, "m");
}

TEST_CASE("a file that may not be read is named") {
  Fixture f;
  write_model(f.dir / "m", 1);
  REQUIRE(::chmod(f.dir.path().c_str(), 0755) == 0);
  REQUIRE(::chmod((f.dir / "m/empty.txt").c_str(), 0) == 0);
  bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);  // root may read any file
  auto report = f.import({f.dir / "m"}, "m");
  if (root) REQUIRE(::seteuid(0) == 0);
  refuse(report, Errc::permission, "m/empty.txt: Permission denied");
}

// Publishes of data sets: gathering, bundles of small files, the resulting version.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <random>

#include "fakes/node_fixture.h"
#include "os/memory_file.h"
#include "os/sys.h"
#include "publish/bundles.h"
#include "publish/dataset_draft.h"
#include "publish/dataset_walk.h"

using weft::Errc;
using weft::FileRole;
using weft::ImportOptions;
using weft::VersionKind;
using weft::testing::Fixture;
using weft::testing::must;
using weft::testing::write_file;

namespace {

using Files = std::map<std::string, std::string>;  // path to content

std::string noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

void write_all(const std::string& directory, const Files& files) {
  for (const auto& [path, content] : files) {
    const std::filesystem::path where = std::filesystem::path(directory) / path;
    std::filesystem::create_directories(where.parent_path());
    write_file(where, content);
  }
}

Files read_all(const std::string& directory) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) {
      const auto bytes = must(weft::read_file(entry.path(), 1U << 30U));
      files[std::filesystem::relative(entry.path(), directory)] =
          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  return files;
}

weft::Result<weft::ImportReport> import_set(Fixture& f, const std::vector<std::string>& paths,
                                            const std::string& name = "set") {
  ImportOptions options;
  options.paths = paths;
  options.name = name;
  options.dataset = true;
  return weft::testing::import_paths(*f.store, options, weft::no_progress());
}

Files exported(Fixture& f, const std::string& spec) {
  const std::string to = f.dir / ("out-" + std::to_string(std::random_device()()));
  must(weft::export_version(*f.store, weft::no_resolver(), spec, to, weft::no_progress()));
  return read_all(to);
}

// A tar of plain members in GNU tar's format.
std::string tar_of(const Files& members) {
  std::string tar;
  for (const auto& [name, content] : members) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(100, 7, "0000644");
    header.replace(124, 11, fmt::format("{:011o}", content.size()));
    header.replace(257, 7, "ustar  ");
    header[156] = '0';
    header.replace(148, 8, "        ");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
    tar += header + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

Files small_set(std::size_t count) {
  Files files;
  for (std::size_t i = 0; i < count; ++i)
    files["train/c" + std::to_string(i % 7) + "/" + std::to_string(i) + ".bin"] = noise(i * 37 % 5000, i);
  files["README.md"] = "a data set\n";
  files["empty"] = "";
  return files;
}

}  // namespace

TEST_CASE("a data set is what was published, whatever its files are") {
  Fixture f;
  Files files = small_set(500);
  files["big.bin"] = noise(weft::kSmallFileMax + 1, 1);
  files["train/big"] = noise(5U << 20U, 2);
  files["shards/a.tar"] = tar_of({{"x/1", "one"}, {"x/2", noise(3000, 3)}});
  write_all(f.dir / "d", files);
  const auto report = must(import_set(f, {f.dir / "d"}));
  CHECK(report.files == files.size());
  CHECK(report.records == 2);
  CHECK(report.tensors == 0);
  const auto row = must(f.resolve("set"));
  CHECK(row.kind == VersionKind::dataset);
  CHECK(exported(f, "set@1") == files);
  const auto manifest = must(weft::load_manifest(*f.store, weft::no_resolver(), row));
  CHECK(weft::published_files(manifest).size() == 3);
  CHECK(weft::files_of(manifest, FileRole::record_table).size() == 1);
  std::uint64_t bytes = 0;
  for (const auto& [path, content] : files) bytes += content.size();
  CHECK(report.logical_bytes == bytes);
  const auto facts = must(weft::dataset_facts(*f.store, manifest));
  CHECK(facts.small_files == files.size() - 3);
  REQUIRE(facts.containers.size() == 1);
  CHECK(facts.containers[0].why_none == "");
  CHECK(facts.containers[0].records == 2);
}

TEST_CASE("the same data set again makes no version, and one that lost a file shares the rest") {
  Fixture f;
  Files files;
  for (int i = 0; i < 300; ++i) files["c/" + std::to_string(1000 + i)] = noise(100'000, static_cast<unsigned>(i));
  write_all(f.dir / "d", files);
  must(import_set(f, {f.dir / "d"}));
  CHECK_FALSE(must(import_set(f, {f.dir / "d"})).outcome.made);
  std::filesystem::remove(f.dir / "d/c/1003");
  const auto less = must(import_set(f, {f.dir / "d"}));
  CHECK(less.outcome.made);
  CHECK(less.outcome.new_bytes < 10U << 20U);  // of 30 MB
}

TEST_CASE("small files of several paths, links and files in the root") {
  Fixture f;
  write_all(f.dir / "a", {{"x/1", "1"}, {"r", "root"}});
  write_all(f.dir / "b", {{"y/2", "2"}, {"y/z/3", "3"}});
  write_file(f.dir / "single", "s");
  REQUIRE(::symlink("1", (f.dir / "a/x/link").c_str()) == 0);
  must(import_set(f, {f.dir / "a", f.dir / "b", f.dir / "single"}));
  CHECK(exported(f, "set") ==
        Files{{"r", "root"}, {"single", "s"}, {"x/1", "1"}, {"x/link", "1"}, {"y/2", "2"}, {"y/z/3", "3"}});
  const auto twice = import_set(f, {f.dir / "a", f.dir / "a"});
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().code == Errc::invalid);
}

TEST_CASE("invalid files of a data set are refused, and lock.mdb is left out") {
  Fixture f;
  write_all(f.dir / "lmdb", {{"data.mdb", "no lmdb"}, {"lock.mdb", "x"}});
  const auto report = must(import_set(f, {f.dir / "lmdb"}));
  REQUIRE(report.left_out.size() == 1);
  CHECK(report.left_out[0].find("lock.mdb") != std::string::npos);
  CHECK(exported(f, "set") == Files{{"data.mdb", "no lmdb"}});
  const auto facts = must(
      weft::dataset_facts(*f.store, must(weft::load_manifest(*f.store, weft::no_resolver(), must(f.resolve("set"))))));
  REQUIRE(facts.containers.size() == 1);
  CHECK_FALSE(facts.containers[0].records);
  CHECK_FALSE(facts.containers[0].why_none.empty());
  std::filesystem::create_directories(f.dir / "empty/in");
  CHECK_FALSE(import_set(f, {f.dir / "empty"}).ok());
  write_all(f.dir / "p", {{"a", "1"}});
  REQUIRE(::mkfifo((f.dir / "p/fifo").c_str(), 0600) == 0);
  CHECK(import_set(f, {f.dir / "p"}).error().code == Errc::invalid);
  CHECK(import_set(f, {f.dir / "nowhere"}).error().code == Errc::not_found);
}

TEST_CASE("links to directories in a data set are refused, skipped or followed") {
  Fixture f;
  write_all(f.dir / "d", {{"a", "1"}});
  write_all(f.dir / "other", {{"b", "2"}, {"in/c", "3"}});
  REQUIRE(::symlink("../other", (f.dir / "d/sub").c_str()) == 0);
  ImportOptions options;
  options.paths = {f.dir / "d"};
  options.name = "set";
  options.dataset = true;
  const auto import = [&] { return weft::testing::import_paths(*f.store, options, weft::no_progress()); };
  CHECK(import().error().code == Errc::invalid);
  options.links = weft::Links::skip;
  CHECK(must(import()).left_out.size() == 1);
  CHECK(exported(f, "set") == Files{{"a", "1"}});
  options.links = weft::Links::follow;
  CHECK(must(import()).left_out.empty());
  CHECK(exported(f, "set") == Files{{"a", "1"}, {"sub/b", "2"}, {"sub/in/c", "3"}});
}

TEST_CASE("the lock file of an LMDB in a single file is left out, and no other file of its name") {
  Fixture f;
  const std::string lock = "\xde\xc0\xef\xbe and more";
  write_all(f.dir / "single",
            {{"a", "1"}, {"a!", "2"}, {"a-lock", lock}, {"b-lock", lock}, {"c", "3"}, {"c-lock", "no"}});
  const auto single = must(import_set(f, {f.dir / "single"}));
  REQUIRE(single.left_out.size() == 1);
  CHECK(single.left_out[0].find("a-lock: left out: it is LMDB's lock file") != std::string::npos);
  CHECK(exported(f, "set") == Files{{"a", "1"}, {"a!", "2"}, {"b-lock", lock}, {"c", "3"}, {"c-lock", "no"}});
}

TEST_CASE("a Git LFS pointer in a data set is refused by name, and a text about one is kept") {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  for (const char* name : {"x.bin", "in/x.jpg", "x.h5", "shard-00000.tar", "data.mdb"}) {
    CAPTURE(name);
    Fixture f;
    write_all(f.dir / "d", {{"a.bin", "1"}, {name, pointer}, {"z.bin", "2"}});
    const auto refused = import_set(f, {f.dir / "d"});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::invalid);
    CHECK(refused.error().message.find(std::string(f.dir / "d") + "/" + name) == 0);
    CHECK(refused.error().message.find("run git lfs pull") != std::string::npos);
  }
  Fixture f;
  const Files texts = {{"README.md", pointer},
                       {"in/notes.txt", pointer},
                       {"pointer", pointer},
                       {"long.bin", pointer + std::string(1024, ' ')}};
  write_all(f.dir / "d", texts);
  must(import_set(f, {f.dir / "d"}));
  CHECK(exported(f, "set") == texts);
}

TEST_CASE("a container of no bytes has no records, and a directory may be 64 deep") {
  Fixture f;
  write_all(f.dir / "d", {{"x.tar", ""}, {"deep", "1"}});
  std::filesystem::create_directories(std::filesystem::path(f.dir / "d") / [] {
    std::string path = "d";
    for (int i = 1; i < 64; ++i) path += "/d";
    return path;
  }());
  must(import_set(f, {f.dir / "d"}));
  const auto facts = must(
      weft::dataset_facts(*f.store, must(weft::load_manifest(*f.store, weft::no_resolver(), must(f.resolve("set"))))));
  REQUIRE(facts.containers.size() == 1);
  CHECK_FALSE(facts.containers[0].why_none.empty());
}

TEST_CASE("a client's file whose extents no manifest can hold is refused before memory is taken for them") {
  weft::SourceFile huge{.path = "h.bin", .where = "h.bin", .size = std::uint64_t{1} << 60U};
  huge.open = []() -> weft::Result<weft::Fd> {
    weft::Fd fd = must(weft::memory_file("huge"));
    REQUIRE(::ftruncate(fd.get(), std::int64_t{1} << 60U) == 0);
    return fd;
  };
  CHECK(weft::draft_dataset({huge}, weft::no_progress()).error().code == Errc::unsupported);
}

TEST_CASE("a data set whose client does not answer stops no other one, and its table has the announced size") {
  Fixture f;
  write_all(f.dir / "d", {{"a", "1"}, {"b", "2"}});
  const auto sources = [&f] { return must(weft::gather_dataset(std::vector{f.dir / "d"}, f.dir / "store")).files; };
  std::future<bool> other;
  auto hangs = sources();
  REQUIRE(hangs.back().role == FileRole::file_table);
  hangs.back().open = [&, open = hangs.back().open] {
    other = std::async(std::launch::async, [&] { return weft::draft_dataset(sources(), weft::no_progress()).ok(); });
    CHECK(other.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return open();
  };
  CHECK(must(weft::draft_dataset(hangs, weft::no_progress())).small_files == 2);
  auto larger = sources();
  --larger.back().size;
  CHECK(weft::draft_dataset(larger, weft::no_progress()).error().code == Errc::invalid);
}

TEST_CASE("a name belongs to models or to data sets, not to both") {
  Fixture f;
  write_all(f.dir / "d", {{"a", "1"}});
  must(import_set(f, {f.dir / "d"}, "n"));
  ImportOptions model;
  model.paths = {f.dir / "d"};
  model.name = "n";
  const auto refused = weft::testing::import_paths(*f.store, model, weft::no_progress());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::exists);
  CHECK(refused.error().message == "n is the name of a data set: expected the name of a model");
  model.name = "m";
  must(weft::testing::import_paths(*f.store, model, weft::no_progress()));
  CHECK(import_set(f, {f.dir / "d"}, "m").error().code == Errc::exists);
}

TEST_CASE("a name without versions is free for the other kind") {
  Fixture f;
  write_all(f.dir / "d", {{"a", "1"}});
  must(import_set(f, {f.dir / "d"}, "org/n"));
  must(f.store->remove_version("org/n", 1));
  ImportOptions model;
  model.paths = {f.dir / "d"};
  model.name = "org/n";
  CHECK(must(weft::testing::import_paths(*f.store, model, weft::no_progress())).outcome.version.number == 2);
  CHECK(import_set(f, {f.dir / "d"}, "org/n").error().code == Errc::exists);
  must(f.store->remove_version("org/n", 2));
  must(import_set(f, {f.dir / "d"}, "org/n"));
  const auto snapshot = must(f.store->snapshot());
  const auto row = must(snapshot->model("org/n"));
  CHECK(row.kind == weft::VersionKind::dataset);
  CHECK(row.latest == 3);
}

TEST_CASE("a small file that changes while it waits is refused") {
  Fixture f;
  write_all(f.dir / "d", {{"a", "1"}, {"b", "22"}});
  const std::vector<std::string> paths{f.dir / "d"};
  auto sources = must(weft::gather_dataset(paths, f.dir / "store"));
  REQUIRE(sources.files.size() == 2);
  write_file(f.dir / "d/b", "333");
  const auto bundle = sources.files[0].open();
  REQUIRE_FALSE(bundle.ok());
  CHECK(bundle.error().code == Errc::changed);
}

TEST_CASE("bundles never cut a file, segments are of a few MiB, and both cover all bytes") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    weft::FileTableMaker maker;
    must(maker.directory(0, ""));
    for (std::uint32_t d = 1; d < 5; ++d) must(maker.directory(0, "d" + std::to_string(d)));
    const std::uint64_t size_max = 1U << (random() % 22 + 1);
    for (std::uint32_t d = 0; d < 5; ++d)
      for (int i = 0; i < 300; ++i) must(maker.file(d, std::to_string(1000 + i), random() % size_max));
    const auto bytes = maker.make();
    const auto table = must(weft::FileTable::check(bytes));
    std::uint64_t file = 0, total = 0;
    for (const weft::Bundle& bundle : weft::plan_bundles(table)) {
      CHECK(bundle.first_file == file);
      CHECK(bundle.bytes <= weft::kBundleMax);
      CHECK(table.range(file).offset == total);
      std::uint64_t end = 0;
      for (const weft::Range& segment : bundle.segments) {
        CHECK(segment.offset == end);
        CHECK(segment.length <= weft::kSegmentMax);
        end += segment.length;
      }
      CHECK(end == bundle.bytes);
      file += bundle.files;
      total += bundle.bytes;
      CHECK(end_of(table.range(file - 1)) == total);
    }
    CHECK(total == table.bytes());
  }
}

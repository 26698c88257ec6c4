// Versions whose files come from stored versions, without their bytes.
#include "publish/stored_files.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "fakes/node_fixture.h"

using namespace weft;
using namespace weft::testing;

namespace {

Manifest manifest_of(Fixture& f, const std::string& spec) {
  return must(load_manifest(*f.store, no_resolver(), must(f.resolve(spec))));
}

Result<ImportReport> import(Fixture& f, const std::vector<std::string>& paths, std::vector<StoredFile> stored,
                            const std::string& name, bool dataset = false) {
  ImportOptions options;
  options.paths = paths;
  options.stored = std::move(stored);
  options.name = name;
  options.dataset = dataset;
  return import_paths(*f.store, options, no_progress());
}

std::uint64_t size_at(Fixture& f, const std::string& spec, const std::string& path) {
  return find_file(manifest_of(f, spec), FileRole::published, path)->size;
}

}  // namespace

TEST_CASE("a version takes files of a stored one, and equals an import of all files") {
  Fixture f;
  write_model(f.dir / "a", 1);
  write_model(f.dir / "b", 1);
  write_file(f.dir / "b/notes.txt", "new");
  f.publish({f.dir / "a"}, "m");
  f.publish({f.dir / "b"}, "whole");
  const Manifest whole = manifest_of(f, "whole");
  std::vector<StoredFile> stored;
  write_file(f.dir / "rest/notes.txt", "new");
  const Manifest first = manifest_of(f, "m");
  for (const File& file : published_files(first)) {
    if (file.tensors.empty()) {
      write_file(f.dir / ("rest/" + file.path), read_text(f.dir / ("a/" + file.path)));
    } else {
      stored.push_back({file.path, "m@1", file.path, file.size});
    }
  }
  REQUIRE_FALSE(stored.empty());
  const ImportReport report = must(import(f, {f.dir / "rest"}, stored, "m"));
  CHECK(report.outcome.made);
  CHECK(report.files == published_files(whole).size());
  CHECK(report.logical_bytes == logical_bytes(whole));
  CHECK(manifest_of(f, "m@2") == whole);
  REQUIRE(report.outcome.version.parents.size() == 1);
  CHECK(report.outcome.version.parents[0].number == 1);
}

TEST_CASE("a version consists of stored files alone, also under other paths") {
  Fixture f;
  write_file(f.dir / "a/one.bin", "one");
  write_file(f.dir / "a/two.bin", "two");
  f.publish({f.dir / "a"}, "m");
  must(import(f, {}, {{"x/two.bin", "m@1", "two.bin", 3}, {"one.bin", "m@1", "one.bin", 3}}, "other"));
  const Manifest manifest = manifest_of(f, "other");
  REQUIRE(published_files(manifest).size() == 2);
  CHECK(manifest.files[1].path == "x/two.bin");
  CHECK(manifest.files[1].sha256 == find_file(manifest_of(f, "m"), FileRole::published, "two.bin")->sha256);
}

TEST_CASE("a data set takes large files of a stored one") {
  Fixture f;
  write_file(f.dir / "a/large.bin", std::string(kSmallFileMax + 1, 'x'));
  write_file(f.dir / "a/small.txt", "small");
  must(import(f, {f.dir / "a"}, {}, "d", true));
  write_file(f.dir / "b/small.txt", "other");
  const std::uint64_t size = size_at(f, "d@1", "large.bin");
  must(import(f, {f.dir / "b"}, {{"large.bin", "d@1", "large.bin", size}}, "d", true));
  write_file(f.dir / "c/small.txt", "other");
  write_file(f.dir / "c/large.bin", std::string(kSmallFileMax + 1, 'x'));
  must(import(f, {f.dir / "c"}, {}, "whole", true));
  CHECK(manifest_of(f, "d@2") == manifest_of(f, "whole"));
  const auto inside = import(f, {f.dir / "b"}, {{"small.txt/large.bin", "d@1", "large.bin", size}}, "d", true);
  REQUIRE_FALSE(inside.ok());
  CHECK(inside.error().code == Errc::invalid);
}

TEST_CASE("stored files that are not there, or that another file has the place of, are refused") {
  Fixture f;
  write_file(f.dir / "a/one.bin", "one");
  f.publish({f.dir / "a"}, "m");
  const std::string before = f.state();
  const auto code_of = [&](const StoredFile& stored, bool dataset = false) {
    const auto report = import(f, {f.dir / "a"}, {stored}, "n", dataset);
    REQUIRE_FALSE(report.ok());
    CAPTURE(report.error().message);
    CHECK(report.error().message.find('\n') == std::string::npos);
    return report.error().code;
  };
  CHECK(code_of({"b", "m@2", "one.bin", 3}) == Errc::not_found);
  CHECK(code_of({"b", "m@1", "none.bin", 3}) == Errc::not_found);
  CHECK(code_of({"b", "m@1", "one.bin", 4}) == Errc::changed);
  CHECK(code_of({"b", "m@1", "one.bin", 3}, true) == Errc::unsupported);
  CHECK(code_of({"one.bin", "m@1", "one.bin", 3}) == Errc::invalid);
  CHECK(code_of({"one.bin/b", "m@1", "one.bin", 3}) == Errc::invalid);
  CHECK(code_of({"../b", "m@1", "one.bin", 3}) == Errc::invalid);
  CHECK(f.state() == before);
}

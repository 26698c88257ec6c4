// The plain SHA-256 of published files, for each way in which their bytes come into the store.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "base/sha256.h"
#include "dataset/file_table.h"
#include "fakes/node_fixture.h"
#include "os/sys.h"
#include "reading/open_file.h"

using weft::Digest;
using weft::File;
using weft::FileRole;
using weft::ImportOptions;
using weft::Manifest;
using weft::testing::Fixture;
using weft::testing::must;
using weft::testing::random_bytes;
using weft::testing::safetensors_file;
using weft::testing::write_file;
using weft::testing::write_model;

namespace {

// Returns the stored bytes of a file of the manifest.
std::vector<std::byte> bytes_of(Fixture& f, const File& file) {
  std::vector<weft::ContentId> ids;
  for (const weft::Extent& extent : file.extents) ids.push_back(extent.id);
  const auto open = must(weft::open_blobs(*f.store, file.path, "", ids));
  std::vector<std::byte> bytes(open->size());
  CHECK(must(open->read(0, bytes)) == bytes.size());
  return bytes;
}

Manifest manifest_of(Fixture& f, const std::string& spec) {
  return must(weft::load_manifest(*f.store, weft::no_resolver(), must(f.resolve(spec))));
}

// Checks the digest of each published file.
void check_sums(Fixture& f, const std::string& spec) {
  CAPTURE(spec);
  const Manifest manifest = manifest_of(f, spec);
  CHECK_FALSE(weft::published_files(manifest).empty());
  for (const File& file : weft::published_files(manifest)) {
    CAPTURE(file.path);
    REQUIRE(file.sha256);
    CHECK(*file.sha256 == weft::sha256(bytes_of(f, file)));
  }
}

std::string shard(std::size_t tensor_bytes, std::uint64_t seed) {
  return safetensors_file({{"a", "U8", {tensor_bytes}, random_bytes(tensor_bytes, seed)},
                           {"b", "U8", {100}, random_bytes(100, seed + 1)},
                           {"c", "U8", {5U << 20U}, random_bytes(5U << 20U, 7)}});
}

ImportOptions options_of(const std::string& path, const std::string& name) {
  ImportOptions options;
  options.paths = {path};
  options.name = name;
  return options;
}

}  // namespace

TEST_CASE("files small and larger than all windows, empty ones, and ones that share content") {
  Fixture f;
  write_model(f.dir / "m", 1);
  write_file(f.dir / "m/large.safetensors", shard(70U << 20U, 1));
  write_file(f.dir / "m/bytes", weft::testing::as_text(random_bytes(18U << 20U, 3)));
  f.publish({f.dir / "m"}, "m");
  check_sums(f, "m@1");
  write_model(f.dir / "m", 2);
  write_file(f.dir / "m/large.safetensors", shard(70U << 20U, 5));
  f.publish({f.dir / "m"}, "m");
  check_sums(f, "m@2");
  const Manifest first = manifest_of(f, "m@1"), second = manifest_of(f, "m@2");
  for (const char* const path : {"bytes", "empty.txt", "1_Pooling/config.json"})
    CHECK(find_file(first, FileRole::published, path)->sha256 == find_file(second, FileRole::published, path)->sha256);
}

TEST_CASE("files that are moved or shared into the store") {
  for (const weft::Take take : {weft::Take::move, weft::Take::share}) {
    Fixture f;
    write_file(f.dir / "m/model.safetensors", shard(3U << 20U, 1));
    write_file(f.dir / "m/small", "small");
    ImportOptions options = options_of(f.dir / "m", "m");
    options.take = take;
    must(weft::testing::import_paths(*f.store, options, weft::no_progress()));
    check_sums(f, "m@1");
  }
}

TEST_CASE("a version that inherits has the digests of a whole publish") {
  Fixture f;
  write_model(f.dir / "base", 1);
  write_file(f.dir / "base/other.safetensors", shard(1000, 1));
  f.publish({f.dir / "base"}, "base");
  write_file(f.dir / "part.safetensors",
             safetensors_file({{"encoder.0.weight", "F32", {64, 64}, random_bytes(16384, 9)}}));
  ImportOptions options = options_of(f.dir / "part.safetensors", "derived");
  options.inherit = "base@1";
  must(weft::testing::import_paths(*f.store, options, weft::no_progress()));
  check_sums(f, "derived@1");
  const Manifest base = manifest_of(f, "base@1"), derived = manifest_of(f, "derived@1");
  for (const File& file : base.files)
    CHECK((find_file(derived, FileRole::published, file.path)->sha256 == file.sha256) ==
          (file.path != "model.safetensors"));
  write_file(f.dir / "other.safetensors", safetensors_file({{"new", "F32", {2}, random_bytes(8, 4)}}));
  options = options_of(f.dir / "other.safetensors", "more");
  options.inherit = "base@1";
  options.add = true;
  must(weft::testing::import_paths(*f.store, options, weft::no_progress()));
  check_sums(f, "more@1");
}

TEST_CASE("a version that inherits damaged bytes has no digest of their file") {
  Fixture f;
  write_file(f.dir / "base/model.safetensors", shard(1000, 1));
  f.publish({f.dir / "base"}, "base");
  const File before = manifest_of(f, "base@1").files.front();
  for (const auto& pack : std::filesystem::directory_iterator(f.dir / "store/packs"))
    if (pack.path().extension() == ".pack") {
      const weft::Fd file = must(weft::open_file(pack.path().string(), O_RDWR));
      must(weft::write_exact(file.get(), 2U << 20U, random_bytes(100, 99), "pack"));
    }
  write_file(f.dir / "part.safetensors", safetensors_file({{"b", "U8", {100}, random_bytes(100, 9)}}));
  ImportOptions options = options_of(f.dir / "part.safetensors", "derived");
  options.inherit = "base@1";
  must(weft::testing::import_paths(*f.store, options, weft::no_progress()));
  CHECK(before.sha256);
  CHECK_FALSE(manifest_of(f, "derived@1").files.front().sha256);
}

TEST_CASE("small files of a data set") {
  Fixture f;
  std::map<std::string, std::string> files{{"a/empty", ""}, {"zz/last", ""}, {"large", std::string(9U << 20U, 'x')}};
  for (std::size_t i = 0; i < 700; ++i)
    files["c" + std::to_string(i % 7) + "/" + std::to_string(i)] =
        std::string(weft::testing::as_text(random_bytes(i * 997 % 150'000, i)));
  for (const auto& [path, content] : files) write_file(f.dir / ("d/" + path), content);
  ImportOptions options = options_of(f.dir / "d", "set");
  options.dataset = true;
  must(weft::testing::import_paths(*f.store, options, weft::no_progress()));
  check_sums(f, "set@1");
  const Manifest manifest = manifest_of(f, "set@1");
  CHECK(weft::files_of(manifest, FileRole::bundle).size() > 1);
  const auto table_bytes = bytes_of(f, weft::files_of(manifest, FileRole::file_table).front());
  const auto table = must(weft::FileTable::check(table_bytes));
  REQUIRE(weft::files_of(manifest, FileRole::sums).size() == 1);
  const auto sums = bytes_of(f, weft::files_of(manifest, FileRole::sums).front());
  REQUIRE(sums.size() == table.files() * sizeof(Digest));
  REQUIRE(table.files() == files.size() - 1);
  for (std::uint64_t file = 0; file < table.files(); ++file) {
    CAPTURE(table.file_path(file));
    const Digest expected = weft::sha256(std::as_bytes(std::span(files.at(table.file_path(file)))));
    CHECK(std::ranges::equal(std::span(sums).subspan(file * sizeof(Digest), sizeof(Digest)),
                             std::as_bytes(std::span(expected.bytes))));
  }
  CHECK_FALSE(must(weft::testing::import_paths(*f.store, options, weft::no_progress())).outcome.made);
}

// The files of a commit that a store has already.
#include "pull/known_files.h"

#include <doctest/doctest.h>

#include <string>

#include "base/sha256.h"
#include "fakes/node_fixture.h"
#include "pull/hub_digest.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kCommit(40, 'c');
const std::string kLarge(2U << 20U, 'x');

HubFile in_lfs(const std::string& path, const std::string& content) {
  return {path, content.size(), std::string(40, 'a'), sha256(as_bytes(content))};
}

HubFile in_git(const std::string& path, const std::string& content) {
  HubFile file{path, content.size(), std::string(40, 'a'), std::nullopt};
  HubDigest digest(file);
  digest.update(as_bytes(content));
  file.git_sha1 = digest.finish();
  return file;
}

// A store with a version "org/m" of three files.
struct Stored : Fixture {
  Stored() {
    write_file(dir / "a/large.bin", kLarge);
    write_file(dir / "a/notes.txt", "notes");
    write_file(dir / "a/small.bin", "small");
    ImportOptions options;
    options.paths = {dir / "a"};
    options.name = "org/m";
    options.source.commit = kCommit;
    must(import_paths(*store, options, no_progress()));
  }
  std::vector<KnownFile> known(const std::vector<HubFile>& files, const std::string& name = "org/m") const {
    return must(known_files(*store, no_resolver(), {name, VersionKind::model, files}));
  }
  std::string bytes_of(const KnownFile& file) const {
    std::string bytes;
    must(read_known(*store, file, [&](std::span<const std::byte> part) -> Status {
      bytes += as_text(part);
      return {};
    }));
    return bytes;
  }
  bool has_commit(const std::vector<HubFile>& files, const std::string& name = "org/m") const {
    return must(version_of_commit(*store, no_resolver(), name, kCommit, files)).has_value();
  }
};

}  // namespace

TEST_CASE("known: files in LFS are found by their SHA-256, in any version and at any path") {
  const Stored s;
  const auto known = s.known({in_lfs("other/l.bin", kLarge), in_lfs("s.bin", "small"), in_lfs("t.bin", "Small")}, "x");
  REQUIRE(known.size() == 2);
  CHECK(known[0].path == "other/l.bin");
  CHECK(known[0].version == "org/m@1");
  CHECK(known[0].from == "large.bin");
  CHECK(known[0].is_reusable);
  CHECK(s.bytes_of(known[0]) == kLarge);
  CHECK_FALSE(known[1].is_reusable);  // too small
  CHECK(s.bytes_of(known[1]) == "small");
  CHECK_FALSE(s.known({in_lfs("config.json", kLarge)}, "x").front().is_reusable);  // an import has to read it
  CHECK_FALSE(s.known({in_lfs("large.gguf", kLarge)}, "x").front().is_reusable);   // of another format
}

TEST_CASE("known: a file with shards of another file's tensors is not reusable") {
  Stored s;
  const auto shard = [](const char* offsets) {
    const std::string header = std::string(R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"w\":{\"saved_offsets\":)") +
                               offsets + R"(}}"},"w":{"dtype":"U8","shape":[2097152],"data_offsets":[0,2097152]}})";
    return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + kLarge;
  };
  const std::string first = shard("[0]"), second = shard("[2097152]");
  write_file(s.dir / "b/1.safetensors", first);
  write_file(s.dir / "b/2.safetensors", second);
  ImportOptions options;
  options.paths = {s.dir / "b"};
  options.name = "org/shards";
  must(import_paths(*s.store, options, no_progress()));
  for (const std::string& text : {first, second}) {
    const auto known = s.known({in_lfs("2.safetensors", text)}, "x");
    REQUIRE(known.size() == 1);
    CHECK_FALSE(known[0].is_reusable);
  }
}

TEST_CASE("known: files of git are found by path and content, in versions of the same name") {
  const Stored s;
  const auto known = s.known({in_git("large.bin", kLarge), in_git("notes.txt", "nOtes"), in_git("small.bin", "small")});
  REQUIRE(known.size() == 2);
  CHECK(known[0].path == "large.bin");
  CHECK(known[1].path == "small.bin");
  CHECK(s.known({in_git("other.txt", "notes")}).empty());
  CHECK(s.known({in_git("notes.txt", "notes")}, "x").empty());
}

TEST_CASE("known: small files of a data set are found by path and content") {
  Fixture f;
  write_file(f.dir / "a/one.txt", "one");
  write_file(f.dir / "a/sub/two.txt", "two2");
  ImportOptions options;
  options.paths = {f.dir / "a"};
  options.name = "d";
  options.dataset = true;
  options.source.commit = kCommit;
  must(import_paths(*f.store, options, no_progress()));
  const std::vector<HubFile> files = {in_git("one.txt", "one"), in_lfs("sub/two.txt", "two2")};
  const auto known = must(known_files(*f.store, no_resolver(), {"d", VersionKind::dataset, files}));
  REQUIRE(known.size() == 2);
  std::string bytes;
  must(read_known(*f.store, known[1], [&](std::span<const std::byte> part) -> Status {
    bytes += as_text(part);
    return {};
  }));
  CHECK(bytes == "two2");
  const auto has_commit = [&](const std::vector<HubFile>& wanted) {
    return must(version_of_commit(*f.store, no_resolver(), "d", kCommit, wanted)).has_value();
  };
  CHECK(has_commit(files));
  CHECK_FALSE(has_commit({in_git("one.txt", "onE"), files[1]}));
  CHECK_FALSE(has_commit({files[0], in_lfs("sub/two.txt", "Two2")}));
}

TEST_CASE("known: a version of the commit has to have the same files") {
  const Stored s;
  const std::vector<HubFile> all = {in_lfs("large.bin", kLarge), in_git("notes.txt", "notes"),
                                    in_git("small.bin", "small")};
  CHECK(s.has_commit(all));
  CHECK_FALSE(s.has_commit(all, "other"));
  CHECK_FALSE(s.has_commit({all[0], all[1]}));                                     // it has a file more
  CHECK_FALSE(s.has_commit({all[0], all[1], all[2], in_git("z", "z")}));           // it lacks a file
  CHECK_FALSE(s.has_commit({in_lfs("large.bin", kLarge + "x"), all[1], all[2]}));  // another size
  CHECK_FALSE(s.has_commit({in_lfs("large.bin", std::string(kLarge.size(), 'y')), all[1], all[2]}));
  CHECK_FALSE(s.has_commit({all[0], in_git("notes.txt", "nOtes"), all[2]}));  // whoever published it named the commit
  CHECK_FALSE(must(version_of_commit(*s.store, no_resolver(), "org/m", std::string(40, 'd'), all)).has_value());
}

TEST_CASE("known: removed versions have nothing") {
  const Stored s;
  const VersionName removed{"org/m", 1};
  must(s.store->remove_versions(std::span(&removed, 1), Tagged::refused, {}));
  CHECK_FALSE(s.has_commit({in_lfs("large.bin", kLarge)}));
  CHECK(s.known({in_lfs("large.bin", kLarge)}).empty());
}

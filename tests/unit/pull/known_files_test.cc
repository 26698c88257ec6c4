// The files of a commit that a store has already.
#include "pull/known_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/sha256.h"
#include "fakes/node_fixture.h"
#include "pull/hub_digest.h"
#include "weft/store/cluster_store.h"

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

// There is no other node.
class NoReads final : public ColdReads {
 public:
  Status resolve(VersionId /*version*/) override { return Error{Errc::absent, "no other node"}; }
  Result<std::vector<Run>> bring(const ColdRange& /*what*/) override {
    return Error{Errc::unreachable, "no other node"};
  }
};

std::vector<KnownFile> known_in(Store& store, ColdReads& reads, const KnownQuery& query) {
  return must(known_files(store, reads, query));
}

std::string bytes_of(Store& store, ColdReads* reads, const KnownFile& file) {
  std::string bytes;
  must(read_known(store, reads, file, [&](std::span<const std::byte> part) -> Status {
    bytes += as_text(part);
    return {};
  }));
  return bytes;
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
    NoReads none;
    return known_in(*store, none, {name, VersionKind::model, files});
  }
  bool has_commit(const std::vector<HubFile>& files, const std::string& name = "org/m") const {
    return must(version_of_commit(*store, no_resolver(), name, kCommit, files)).has_value();
  }
};

// A second node of a cluster, with the names of versions of the first node, which it asks for manifests and bytes.
class SecondNode final : public ColdReads {
 public:
  explicit SecondNode(const Fixture& first) : first_(first) {
    must(Store::create(dir / "store"));
    OpenOptions options;
    options.decode = content_decoder();
    store = must(ClusterStore::open(dir / "store", options));
    must(store->mirror().join({"test", "00000000-0000-4000-8000-000000000001"}));
  }

  void mirror(std::string_view spec) {
    MirroredVersion change;
    change.version = must(first_.resolve(spec));
    change.version.publisher = "00000000-0000-4000-8000-000000000002";
    change.tree_nodes = must(must(first_.store->snapshot())->local(change.version.id)).ino_count;
    const MirrorChange changes[] = {change};
    REQUIRE(must(store->mirror().apply(changes, ++revision_)).problems.empty());
  }

  Status resolve(VersionId version) override {
    ++manifests;
    if (!gives_manifests) return Error{Errc::absent, "the first node is away"};
    WEFT_TRY(const VersionRow row, row_of(version));
    WEFT_TRY(const auto manifest, first_.store->open_manifest(row.manifest));
    const auto bytes = manifest->bytes();
    const Adoption adoption{row.model_name, row.number, {bytes.begin(), bytes.end()}};
    return store->cache().adopt(std::span(&adoption, 1));
  }

  Result<std::vector<Run>> bring(const ColdRange& what) override {
    ++ranges;
    if (!gives_bytes) return Error{Errc::unreachable, "the first node is away"};
    WEFT_TRY(const VersionRow row, row_of(what.version));
    WEFT_TRY(const Manifest manifest, load_manifest(*first_.store, no_resolver(), row));
    std::vector<Run> pieces;
    for (const Extent& extent : manifest.files[what.file].extents) {
      const std::uint64_t begin = std::max(extent.offset, what.range.offset);
      const std::uint64_t end = std::min(extent.offset + extent.id.length, what.range.offset + what.range.length);
      if (begin >= end) continue;
      WEFT_TRY(OpenPlace place, first_.store->open_blob(extent.id));
      place.offset += begin - extent.offset;
      pieces.push_back({begin, end - begin, std::move(place)});
    }
    return pieces;
  }

  TempDir dir;
  std::unique_ptr<ClusterStore> store;
  bool gives_manifests = true, gives_bytes = true;
  int manifests = 0, ranges = 0;  // that it was asked for

 private:
  // Returns the first node's record.
  Result<VersionRow> row_of(VersionId version) const {
    WEFT_TRY(const auto snapshot, store->snapshot());
    WEFT_TRY(const VersionRow row, snapshot->version(version));
    return first_.resolve(spec_of(row));
  }

  const Fixture& first_;
  std::uint64_t revision_ = 0;
};

// Files of "org/m": one that an import takes unread, and one that it copies.
const std::vector<HubFile> kTwo = {in_lfs("l.bin", kLarge), in_lfs("s.bin", "small")};

// Two nodes. The first one has also published "org/n", later, which was not pulled.
struct TwoNodes {
  TwoNodes() {
    write_file(first.dir / "b/other.bin", "other");
    first.publish({first.dir / "b"}, "org/n");
    for (const char* spec : {"org/m", "org/n"}) second.mirror(spec);
  }
  std::vector<KnownFile> known() { return known_in(*second.store, second, {"x", VersionKind::model, kTwo}); }

  Stored first;
  SecondNode second{first};
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
  CHECK(bytes_of(*s.store, nullptr, known[0]) == kLarge);
  CHECK_FALSE(known[1].is_reusable);  // too small
  CHECK(bytes_of(*s.store, nullptr, known[1]) == "small");
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
  NoReads none;
  const auto known = known_in(*f.store, none, {"d", VersionKind::dataset, files});
  REQUIRE(known.size() == 2);
  CHECK(bytes_of(*f.store, nullptr, known[1]) == "two2");
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

TEST_CASE("known: files that another node has are known, once it gives a byte of their version") {
  TwoNodes nodes;
  const auto known = nodes.known();
  REQUIRE(known.size() == 2);
  CHECK(nodes.second.manifests == 1);  // of the version that was pulled
  CHECK(nodes.second.ranges == 1);
  CHECK(known[0].is_reusable);
  CHECK_FALSE(known[1].is_reusable);
  CHECK(bytes_of(*nodes.second.store, &nodes.second, known[0]) == kLarge);
  CHECK(bytes_of(*nodes.second.store, &nodes.second, known[1]) == "small");
  const auto sink = [](std::span<const std::byte>) -> Status { return {}; };
  CHECK(read_known(*nodes.second.store, nullptr, known[1], sink).error().code == Errc::absent);
}

TEST_CASE("known: nodes that give nothing are asked once, for a manifest or for bytes") {
  TwoNodes nodes;
  nodes.second.gives_manifests = false;
  CHECK(nodes.known().empty());
  CHECK(nodes.second.manifests == 1);
  CHECK(nodes.second.ranges == 0);
  nodes.second.gives_manifests = true;
  nodes.second.gives_bytes = false;
  CHECK(nodes.known().empty());
  CHECK(nodes.second.manifests == 2);
  CHECK(nodes.second.ranges == 1);
}

#include "origin/dir.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "diskformat/record.h"
#include "os/sys.h"
#include "store_paths.h"
#include "testing.h"

namespace weft::testing {
namespace {

struct LocalPack {
  PackToc toc;
  std::string file;
};

// Makes a pack of blobs of these sizes, each after a hole of 4 KiB.
LocalPack make_pack(const std::string& file, PackId id, const std::vector<std::size_t>& sizes) {
  LocalPack pack{{id, 0, {}}, file};
  std::string bytes;
  for (const std::size_t size : sizes) {
    bytes.append(4096, '\0');
    const auto blob = random_bytes(size, bytes.size());
    PackEntry entry{{size, tree_sha256(blob)}, bytes.size(), std::vector<Digest>(chunk_count(size)), 0};
    sha256_chunks(blob, entry.chunks);
    pack.toc.entries.push_back(std::move(entry));
    bytes += as_text(blob);
  }
  pack.toc.size = bytes.size();
  write_file(file, bytes);
  return pack;
}

Status put(const OriginDir& origin, const LocalPack& pack) {
  WEFT_TRY(const Fd fd, open_file(pack.file, O_RDONLY));
  return origin.put_pack(pack.toc, fd.get(), no_progress());
}

OriginDir must_open(const std::string& path) {
  auto origin = OriginDir::open(path, "cluster");
  REQUIRE_MESSAGE(origin.ok(), (origin.ok() ? "" : origin.error().message));
  return std::move(origin).value();
}

}  // namespace

TEST_CASE("an origin is made in a directory, once, and known again") {
  const TempDir temp;
  const OriginDir first = must_open(temp.path());
  CHECK(!first.uuid().empty());
  CHECK(must_open(temp.path()).uuid() == first.uuid());
  CHECK(OriginDir::open(temp / "none", "cluster").error().code == Errc::not_found);
  write_file(temp / "weft-origin", "something else");
  CHECK(OriginDir::open(temp.path(), "cluster").error().code == Errc::corrupt);
}

TEST_CASE("no link below an origin is followed, to read or to write") {
  const TempDir temp;
  REQUIRE(make_directory(temp / "origin").ok());
  const OriginDir origin = must_open(temp / "origin");
  const LocalPack pack = make_pack(temp / "pack", 0xabc, {100});
  REQUIRE(put(origin, pack).ok());
  const std::string stored = origin.path() + "/packs/0000000000000abc.pack";
  std::filesystem::rename(stored, temp / "secret");
  std::filesystem::create_symlink(temp / "secret", stored);
  CHECK(origin.open_pack(0xabc).error().message == stored + ": expected no symbolic link in this path");
  std::filesystem::rename(temp / "origin/tmp", temp / "elsewhere");
  std::filesystem::create_directory_symlink(temp / "elsewhere", temp / "origin/tmp");
  CHECK_FALSE(put(origin, make_pack(temp / "other", 0xdef, {100})).ok());
  CHECK_FALSE(origin.put_manifest({}, as_bytes("bytes")).ok());
  CHECK(std::filesystem::is_empty(temp / "elsewhere"));
  std::filesystem::rename(temp / "origin/weft-origin", temp / "identity");
  std::filesystem::create_symlink(temp / "identity", temp / "origin/weft-origin");
  CHECK(OriginDir::open_existing(temp / "origin").error().message.ends_with("expected no symbolic link in this path"));
}

TEST_CASE("a pack that is put at an origin is there byte for byte, with its table of contents") {
  const TempDir temp;
  REQUIRE(make_directory(temp / "origin").ok());
  const OriginDir origin = must_open(temp / "origin");
  const LocalPack pack = make_pack(temp / "pack", 0xabc, {100, 9 * kDigestChunk + 5, 4096});
  REQUIRE(put(origin, pack).ok());
  CHECK(read_text(pack_path(origin.path(), 0xabc)) == read_text(pack.file));
  const auto toc = origin.toc(0xabc);
  REQUIRE(toc.ok());
  CHECK(toc->entries.size() == 3);
  CHECK(put(origin, pack).ok());  // a repeated put succeeds
  CHECK(std::filesystem::is_empty(origin.path() + "/tmp"));
}

TEST_CASE("a damaged pack does not get to an origin") {
  const TempDir temp;
  REQUIRE(make_directory(temp / "origin").ok());
  const OriginDir origin = must_open(temp / "origin");
  LocalPack pack = make_pack(temp / "pack", 0xabc, {100, 5000});
  std::string bytes = read_text(pack.file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(pack.file, bytes);
  CHECK(put(origin, pack).error().code == Errc::corrupt);
  CHECK(origin.toc(0xabc).error().code == Errc::not_found);
  CHECK(std::filesystem::is_empty(origin.path() + "/tmp"));
  CHECK(std::filesystem::is_empty(origin.path() + "/packs"));
}

TEST_CASE("places are found again, and others than a manifest's own are refused") {
  const TempDir temp;
  const OriginDir origin = must_open(temp.path());
  Places places{sha256(as_bytes("manifest")), {}};
  for (std::uint64_t i = 1; i < 100; ++i) places.blobs.push_back({{i, sha256(as_bytes("x"))}, {i * 7, i * 9}});
  REQUIRE(origin.put_places(places).ok());
  const auto got = origin.places(places.manifest);
  REQUIRE(got.ok());
  CHECK(got->blobs == places.blobs);
  CHECK(got->find(places.blobs[41].first) == places.blobs[41].second);
  CHECK(!got->find({1, Digest{{2}}}));
  const Digest other = sha256(as_bytes("other"));
  std::filesystem::copy_file(origin.path() + "/places/" + to_hex(places.manifest),
                             origin.path() + "/places/" + to_hex(other));
  CHECK(origin.places(other).error().code == Errc::corrupt);
}

TEST_CASE("places out of order, empty or beyond any file do not verify") {
  const Digest manifest = sha256(as_bytes("manifest"));
  const ContentId a{1, Digest{{1}}};
  const ContentId b{2, Digest{{1}}};
  const auto decoded = [&](std::vector<std::pair<ContentId, BlobPlace>> blobs) {
    return decode_places(encode_places({manifest, std::move(blobs)}), manifest, "test").ok();
  };
  CHECK(decoded({{a, {1, 0}}, {b, {1, 1}}}));
  CHECK(!decoded({{b, {1, 1}}, {a, {1, 0}}}));
  CHECK(!decoded({{a, {1, 0}}, {a, {1, 0}}}));
  CHECK(!decoded({{{0, Digest{{1}}}, {1, 0}}}));
  CHECK(!decoded({{a, {1, UINT64_MAX}}}));
  auto record = encode_places({manifest, {{a, {1, 0}}}});
  for (std::size_t cut = 0; cut < record.size(); ++cut)
    CHECK(!decode_places(std::span(record).first(cut), manifest, "test").ok());
}

TEST_CASE("origin_totals() counts the files of an origin, and fails if there is none") {
  const TempDir temp;
  REQUIRE(make_directory(temp / "origin").ok());
  const OriginDir origin = must_open(temp / "origin");
  REQUIRE(put(origin, make_pack(temp / "a", 1, {5000})).ok());
  REQUIRE(put(origin, make_pack(temp / "b", 2, {5000, 5000})).ok());
  REQUIRE(origin.put_manifest(sha256(as_bytes("m")), as_bytes("m")).ok());
  VersionRow row;
  row.model_name = "org/model";
  row.number = 3;
  REQUIRE(origin.put_event(row, "").ok());
  REQUIRE(origin.put_event(row, "").ok());
  const auto totals = origin_totals(origin.path(), std::chrono::seconds(10));
  REQUIRE(totals.ok());
  CHECK(totals->packs == 2);
  CHECK(totals->bytes >= 15000);
  CHECK(totals->manifests == 1);
  CHECK(totals->versions == 1);
  CHECK(origin_totals(temp / "none", std::chrono::seconds(10)).error().code == Errc::not_found);
}

}  // namespace weft::testing

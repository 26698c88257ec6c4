// Imports that read files while they arrive.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "fakes/node_fixture.h"
#include "os/sys.h"
#include "weft/arrival.h"

using weft::Digest;
using weft::Errc;
using weft::ImportOptions;
using weft::ImportReport;
using weft::Range;
using weft::Result;
using weft::Take;
using weft::testing::as_bytes;
using weft::testing::Fixture;
using weft::testing::must;
using weft::testing::random_bytes;
using weft::testing::safetensors_file;
using weft::testing::write_file;

namespace {

constexpr std::size_t kTensor = 20U << 20U;  // larger than a window

std::string shard(std::uint64_t seed) {
  return safetensors_file({{"a", "U8", {kTensor}, random_bytes(kTensor, seed)}, {"b", "U8", {3}, random_bytes(3, 7)}});
}

// One file whose bytes come as the import asks for them, a MiB at a time.
class OneArriving final : public weft::ArrivingFiles {
 public:
  OneArriving(std::string path, std::string content, Digest digest)
      : path_(std::move(path)), content_(std::move(content)), digest_(digest) {
    std::filesystem::create_directories(path_.substr(0, path_.rfind('/')));
    fd_ = must(weft::open_file(path_, O_RDWR | O_CREAT, 0600));
    REQUIRE(::ftruncate(fd_.get(), static_cast<off_t>(content_.size())) == 0);
  }

  std::optional<Digest> expected(std::string_view path) const override {
    return path == "model.safetensors" ? std::optional(digest_) : std::nullopt;
  }

  Result<std::uint64_t> await(std::string_view /*path*/, Range range) override {
    ++waits;
    if (fails) return weft::Error{Errc::unreachable, "the server is gone"};
    if (range.offset < arrived_) return arrived_;
    const std::size_t end = std::min<std::size_t>(content_.size(), range.offset + (1U << 20U));
    must(weft::write_exact(fd_.get(), arrived_, as_bytes(content_.substr(arrived_, end - arrived_)), path_));
    arrived_ = end;
    if (end < content_.size()) return end;
    if (!stays_open) fd_.reset();
    return end;
  }

  unsigned waits = 0;
  bool fails = false, stays_open = false;

 private:
  const std::string path_, content_;
  const Digest digest_;
  weft::Fd fd_;
  std::size_t arrived_ = 0;
};

Result<ImportReport> import(Fixture& f, OneArriving& arriving, Take take = Take::move) {
  ImportOptions options;
  options.paths = {f.dir / "m"};
  options.name = "m";
  options.take = take;
  options.arriving = &arriving;
  return weft::testing::import_paths(*f.store, options, weft::no_progress());
}

std::vector<std::filesystem::path> packs_of(const Fixture& f) {
  std::vector<std::filesystem::path> packs;
  for (const auto& entry : std::filesystem::directory_iterator(f.dir / "store/packs"))
    if (entry.path().extension() == ".pack") packs.push_back(entry.path());
  return packs;
}

}  // namespace

TEST_CASE("a file that arrives becomes the pack as it is, or is copied") {
  const std::string content = shard(1);
  for (const Take take : {Take::move, Take::copy}) {
    Fixture f;
    OneArriving arriving(f.dir / "m/model.safetensors", content, weft::sha256(as_bytes(content)));
    write_file(f.dir / "m/config.json", "{}");
    const ImportReport report = must(import(f, arriving, take));
    CHECK(report.tensors == 2);
    CHECK(arriving.waits >= content.size() >> 20U);
    struct stat source {};
    REQUIRE(::stat((f.dir / "m/model.safetensors").c_str(), &source) == 0);
    CHECK(source.st_nlink == (take == Take::move ? 2 : 1));
    bool found = false;
    for (const auto& path : packs_of(f)) {
      struct stat pack {};
      REQUIRE(::stat(path.c_str(), &pack) == 0);
      found = found || pack.st_ino == source.st_ino;
    }
    CHECK(found == (take == Take::move));
  }
}

TEST_CASE("a file that arrives with other bytes is named, and nothing is published") {
  Fixture f;
  const std::string before = f.state();
  const std::string content = shard(1);
  std::string wrong = content;
  wrong.back() = 'x';
  OneArriving arriving(f.dir / "m/model.safetensors", wrong, weft::sha256(as_bytes(content)));
  const auto refused = import(f, arriving);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::corrupt);
  CHECK(refused.error().message.find("model.safetensors: expected a file with the SHA-256") != std::string::npos);
  CHECK(f.state() == before);
  CHECK(packs_of(f).empty());
}

TEST_CASE("an error of the receiver ends the import") {
  Fixture f;
  const std::string content = shard(1);
  OneArriving arriving(f.dir / "m/model.safetensors", content, weft::sha256(as_bytes(content)));
  arriving.fails = true;
  const auto refused = import(f, arriving);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::unreachable);
}

TEST_CASE("a file that is still open for writing after its last byte is not moved into the store") {
  Fixture f;
  const std::string content = shard(1);
  OneArriving arriving(f.dir / "m/model.safetensors", content, weft::sha256(as_bytes(content)));
  arriving.stays_open = true;
  const auto refused = import(f, arriving);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::busy);
  CHECK(packs_of(f).empty());
}

TEST_CASE("most of a file that arrives is known: its new bytes are copied") {
  Fixture f;
  const std::string content = shard(1);
  write_file(f.dir / "first/model.safetensors", content);
  f.publish({f.dir / "first"}, "first");
  std::string later = content;
  later.back() = 9;
  OneArriving arriving(f.dir / "m/model.safetensors", later, weft::sha256(as_bytes(later)));
  const ImportReport report = must(import(f, arriving));
  CHECK(report.outcome.new_bytes < 1U << 20U);
}

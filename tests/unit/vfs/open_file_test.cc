#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "diskformat/pack_names.h"
#include "fakes/blob_store.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "reading/open_file.h"
#include "testing.h"

namespace weft::testing {
namespace {

std::string read_range(OpenFile& file, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  const auto got = file.read(offset, bytes);
  REQUIRE(got.ok());
  return std::string(as_text(std::span(bytes).first(*got)));
}

std::shared_ptr<OpenFile> must_open(Store& store, const std::string& head, std::span<const ContentId> blobs) {
  auto file = open_blobs(store, "test", head, blobs);
  REQUIRE(file.ok());
  return std::move(file).value();
}

}  // namespace

TEST_CASE("a file of several packs and a head reads like its parts put together") {
  BlobStore store;
  const PackId a = store.add_pack("0123456789");
  const PackId b = store.add_pack("abcdefghij");
  const std::vector<ContentId> blobs{store.add_blob(1, a, 2, 3), store.add_blob(2, b, 0, 4), store.add_blob(3, a, 5, 5),
                                     store.add_blob(1, a, 2, 3)};
  const std::string expected = "HEAD!234abcd56789234";
  const auto file = must_open(store, "HEAD!", blobs);
  CHECK(file->size() == expected.size());
  CHECK(file->backing_fd() == -1);
  CHECK(store.locks == 2);
  for (std::size_t from = 0; from <= expected.size() + 1; ++from)
    for (std::size_t size = 0; size <= expected.size(); ++size)
      CHECK(read_range(*file, from, size) == (from > expected.size() ? "" : expected.substr(from, size)));
  CHECK(read_range(*file, UINT64_MAX, 4).empty());
}

TEST_CASE("a range of a file has a place if it lies in one piece of a pack") {
  BlobStore store;
  const PackId a = store.add_pack("0123456789");
  const PackId b = store.add_pack("abcdefghij");
  const std::vector<ContentId> blobs{store.add_blob(1, a, 2, 3), store.add_blob(2, a, 5, 2),
                                     store.add_blob(3, b, 4, 4)};
  const auto file = must_open(store, "H", blobs);
  const std::string expected = "H23456efgh";
  REQUIRE(file->size() == expected.size());
  for (std::uint64_t from = 0; from <= expected.size() + 1; ++from)
    for (std::uint64_t length = 1; length <= expected.size() + 1; ++length) {
      CAPTURE(from);
      CAPTURE(length);
      const auto place = file->place_of({from, length});
      const bool is_in_first = from >= 1 && from + length <= 6;
      const bool is_in_second = from >= 6 && from + length <= 10;
      REQUIRE(place.has_value() == (is_in_first || is_in_second));
      if (!place) continue;
      std::string got(length, '\0');
      must(read_exact(place->fd, place->offset, std::as_writable_bytes(std::span(got)), "place"));
      CHECK(got == expected.substr(from, length));
    }
  CHECK_FALSE(file->place_of({UINT64_MAX, 1}).has_value());
  CHECK_FALSE(file->place_of({2, UINT64_MAX}).has_value());
  CHECK_FALSE(open_text("text")->place_of({0, 1}).has_value());
}

namespace {

std::string random_text(std::size_t count, std::uint64_t seed) {
  return std::string(as_text(random_bytes(count, seed)));
}

// Concatenates the parts of in_memory(). No page is dropped during the test, so reading them is safe.
std::string in_memory(OpenFile& file, std::uint64_t offset, std::size_t size) {
  std::string text;
  const auto parts = file.in_memory(offset, size);
  REQUIRE(parts.ok());
  for (const auto part : *parts) text += as_text(part);
  return text;
}

Fd file_of(const BlobStore& store, PackId pack) {
  return must(open_file(store.pack_path(pack), O_RDONLY));
}

// Drops the cached pages of a pack. False if that is impossible.
bool drop_cached(const BlobStore& store, PackId pack) {
  const Fd fd = file_of(store, pack);
  REQUIRE(::fdatasync(fd.get()) == 0);
  REQUIRE(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
  return !all_cached(fd.get(), 0, 1);
}

}  // namespace

TEST_CASE("cached bytes are answered from mapped memory") {
  BlobStore store;
  const PackId a = store.add_pack(random_text(20'000, 1));
  const PackId b = store.add_pack(random_text(9'000, 2));
  const std::vector<ContentId> blobs{store.add_blob(1, a, 5000, 9000), store.add_blob(2, b, 0, 9000)};
  const auto file = must_open(store, "HEAD!", blobs);
  const std::string expected = read_range(*file, 0, 100'000);
  if (!all_cached(file_of(store, a).get(), 0, 20'000)) {
    MESSAGE("not tried: the kernel does not say what is cached");
    return;
  }
  for (const std::uint64_t from : {0U, 3U, 5U, 4096U, 9004U, 9005U, 18'004U})
    for (const std::size_t size : {1U, 5U, 4096U, 50'000U})
      CHECK(in_memory(*file, from, size) == expected.substr(from, size));
  CHECK(in_memory(*file, 18'005, 1).empty());
  CHECK(in_memory(*file, UINT64_MAX, 1).empty());
  SUBCASE("uncached bytes are read") {
    if (!drop_cached(store, b)) return;
    CHECK(in_memory(*file, 0, 9005) == expected.substr(0, 9005));
    CHECK(in_memory(*file, 0, 9006).empty());
    CHECK(read_range(*file, 0, 100'000) == expected);
    CHECK(in_memory(*file, 0, 100'000) == expected);
  }
  SUBCASE("a truncated pack is not mapped, and a read fails") {
    REQUIRE(::truncate(store.pack_path(b).c_str(), 4096) == 0);
    CHECK(in_memory(*file, 0, 100'000).empty());
    std::vector<std::byte> bytes(100'000);
    CHECK_FALSE(file->read(0, bytes).ok());
  }
}

TEST_CASE("a read of many small parts is copied") {
  BlobStore store;
  const PackId pack = store.add_pack(random_text(10'000, 3));
  std::vector<ContentId> blobs;
  for (std::uint64_t i = 0; i < limits::kReadPartsMax; ++i) blobs.push_back(store.add_blob(i, pack, 20 * i, 10));
  const std::size_t bytes = 10 * limits::kReadPartsMax;
  CHECK(in_memory(*must_open(store, "", blobs), 0, bytes).size() == bytes);
  const auto file = must_open(store, "H", blobs);
  CHECK(in_memory(*file, 0, bytes + 1).empty());
  CHECK(in_memory(*file, 1, bytes).size() == bytes);
}

TEST_CASE("a sequential reader of a tensor file is read ahead, up to the end of the tensor") {
  constexpr std::size_t kMiB = 1U << 20U;
  constexpr std::size_t kBegin = 5000;
  constexpr std::size_t kLength = 30 * kMiB;
  BlobStore store;
  const std::string all = random_text(50 * kMiB, 4);
  const PackId pack = store.add_pack(all);
  const std::vector<ContentId> blobs{store.add_blob(1, pack, kBegin, kLength)};
  Prefetcher prefetcher;
  const auto file = must(open_blobs(store, "test", "", blobs, {&prefetcher, {}, true}));
  const Fd fd = file_of(store, pack);
  if (!drop_cached(store, pack)) {
    MESSAGE("not tried: pages stay in the page cache");
    return;
  }
  const auto cached = [&](std::size_t from, std::size_t to) { return must(cached_pages(fd.get(), from, to - from)); };
  SUBCASE("one request reads no more than its range") {
    CHECK(in_memory(*file, 8 * kMiB, kMiB) == all.substr(kBegin + 8 * kMiB, kMiB));
    CHECK(cached(0, all.size()) <= kMiB / page_bytes() + 2);
  }
  SUBCASE("a few scattered requests read no more than their ranges") {
    for (std::size_t at = 0; at < kLength; at += 3 * kMiB) CHECK(in_memory(*file, at, 4096).size() == 4096);
    CHECK(cached(0, all.size()) <= 2 * (kLength / kMiB));
    CHECK_FALSE(file->better_in_memory());
  }
  SUBCASE("several sequential requests read the whole tensor") {
    for (std::size_t at = 0; at < 10 * kMiB; at += kMiB)
      CHECK(in_memory(*file, at, kMiB) == all.substr(kBegin + at, kMiB));
    for (int i = 0; i < 1000 && !all_cached(fd.get(), kBegin, kLength); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(all_cached(fd.get(), kBegin, kLength));
    CHECK(file->better_in_memory());
    for (std::size_t at = 10 * kMiB; at < kLength; at += kMiB)
      CHECK(in_memory(*file, at, kMiB) == all.substr(kBegin + at, kMiB));
    CHECK(in_memory(*file, kLength - 100, 100) == all.substr(kBegin + kLength - 100, 100));
    CHECK(cached(kBegin + kLength + page_bytes(), all.size()) == 0);
  }
}

TEST_CASE("a file that is a whole pack can be passed through, others cannot") {
  BlobStore store;
  const PackId pack = store.add_pack("0123456789");
  const ContentId first = store.add_blob(1, pack, 0, 4);
  const ContentId second = store.add_blob(2, pack, 4, 6);
  const std::vector<ContentId> whole{first, second};
  const auto file = must_open(store, "", whole);
  REQUIRE(file->backing_fd() >= 0);
  char bytes[10];
  CHECK(::pread(file->backing_fd(), bytes, 10, 0) == 10);
  CHECK(std::string_view(bytes, 10) == "0123456789");
  CHECK(must_open(store, "", std::vector{first})->backing_fd() == -1);
  CHECK(must_open(store, "", std::vector{second, first})->backing_fd() == -1);
  CHECK(must_open(store, "h", whole)->backing_fd() == -1);
}

TEST_CASE("a file without bytes") {
  BlobStore store;
  const auto file = must_open(store, "", {});
  CHECK(file->size() == 0);
  CHECK(file->backing_fd() == -1);
  CHECK(read_range(*file, 0, 10).empty());
}

TEST_CASE("blobs that move between a look and the lock are found again") {
  BlobStore store;
  const PackId old_pack = store.add_pack("xxxxAAAABBBB");
  const PackId new_pack = store.add_pack("BBBBAAAA");
  const ContentId a = store.add_blob(1, old_pack, 4, 4);
  const ContentId b = store.add_blob(2, old_pack, 8, 4);
  store.before_lock = [&] {
    store.move_blob(a, new_pack, 4);
    store.move_blob(b, new_pack, 0);
  };
  const auto file = must_open(store, "", std::vector{a, b});
  CHECK(read_range(*file, 0, 8) == "AAAABBBB");
}

TEST_CASE("places are remembered until the next commit, and their packs locked each time") {
  BlobStore store;
  const PackId one = store.add_pack("0123456789");
  const PackId two = store.add_pack("abcdefghij");
  const std::vector<ContentId> blobs{store.add_blob(1, one, 0, 4), store.add_blob(2, two, 2, 3),
                                     store.add_blob(3, one, 4, 6)};
  KnownPlaces places;
  const auto text = [&] {
    const auto file = open_blobs(store, "test", "", blobs, {}, {&places, 7});
    REQUIRE(file.ok());
    return read_range(**file, 0, 100);
  };
  CHECK(text() == "0123cde456789");
  store.snapshots = store.looks = store.locks = 0;
  CHECK(text() == "0123cde456789");
  CHECK(store.snapshots == 0);
  CHECK(store.looks == 0);
  CHECK(store.locks == 2);
  store.move_blob(blobs[2], store.add_pack("--456789"), 2);
  CHECK(text() == "0123cde456789");
  CHECK(store.looks > 0);
  store.looks = 0;
  CHECK(text() == "0123cde456789");
  CHECK(store.looks == 0);
  store.before_lock = [&] { store.move_blob(blobs[1], store.add_pack("cde"), 0); };
  CHECK(text() == "0123cde456789");
  store.before_lock = [] {};
  store.forget_blob(blobs[2]);
  CHECK_FALSE(open_blobs(store, "test", "", blobs, {}, {&places, 7}).ok());
}

TEST_CASE("the error of an absent blob names its file") {
  BlobStore store;
  const ContentId a = store.add_blob(1, store.add_pack("AAAA"), 0, 4);
  store.forget_blob(a);
  const auto file = open_blobs(store, "m@1: model.safetensors", "", std::vector{a});
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().code == Errc::not_found);
  CHECK(file.error().message.starts_with("m@1: model.safetensors: "));
}

TEST_CASE("text reads as it is") {
  const auto file = open_text("hello", ReadMode::changing);
  CHECK(file->mode() == ReadMode::changing);
  CHECK(file->size() == 5);
  CHECK(read_range(*file, 1, 100) == "ello");
  CHECK(read_range(*file, 5, 1).empty());
}

}  // namespace weft::testing

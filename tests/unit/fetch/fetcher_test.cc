#include "fetch/fetcher.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <random>
#include <thread>

#include <fmt/core.h>

#include "away.h"
#include "base/sha256.h"
#include "caching_store.h"
#include "diskformat/hash.h"
#include "fakes/twin_source.h"
#include "os/sys.h"
#include "testing.h"
#include "weft/model/manifest.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// A version of many small files of one blob each. Its bytes are in a twin source and not in the store.
struct AwayTree {
  CachingStore store;
  std::shared_ptr<TwinSource> twin = std::make_shared<TwinSource>();
  std::vector<std::string> texts;
  VersionId version = 0;

  AwayTree(std::size_t count, std::size_t bytes) {
    Manifest manifest;
    for (std::size_t i = 0; i < count; ++i) {
      auto blob = random_bytes(bytes + i % 7, i + 1);
      texts.emplace_back(as_text(blob));
      File file;
      file.path = fmt::format("{:06}", i);
      file.size = blob.size();
      file.extents.push_back({0, {blob.size(), tree_sha256(blob)}});
      store.add_absent(file.extents.front().id);
      twin->put(file.extents.front().id, std::move(blob));
      manifest.files.push_back(std::move(file));
    }
    const auto encoded = encode_manifest(manifest);
    REQUIRE(encoded.ok());
    twin->put_manifest(sha256(*encoded), *encoded);
    version = store.add_version(sha256(*encoded));
  }
  void lose(std::uint32_t file) const {
    const auto bytes = as_bytes(texts[file]);
    twin->lose({bytes.size(), tree_sha256(bytes)});
  }
  // Fetches a file and returns its bytes.
  std::string text(Fetcher& fetcher, std::uint32_t file) const {
    const auto pieces = fetcher.bring({version, file, {0, texts[file].size()}, 0});
    REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
    REQUIRE(pieces->size() == 1);
    CHECK(pieces->front().length == texts[file].size());
    std::string out(texts[file].size(), '?');
    const OpenPlace& place = pieces->front().place;
    REQUIRE(read_exact(place.pack->fd(), place.offset, std::as_writable_bytes(std::span(out)), "piece").ok());
    return out;
  }
};

std::size_t open_descriptors() {
  const auto names = list_directory("/proc/self/fd");
  REQUIRE(names.ok());
  return names->size();
}

// A source that pauses before each read.
class SlowSource final : public TwinsReads {
 public:
  SlowSource(std::shared_ptr<TwinSource> twin, std::chrono::milliseconds pause)
      : TwinsReads(std::move(twin)), pause_(pause) {}
  std::string_view name() const override { return "slow"; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    std::this_thread::sleep_for(pause_);
    return twin_->read(manifest, runs, deadline, aid);
  }

 private:
  const std::chrono::milliseconds pause_;
};

// A source that is too busy to send one of its blobs.
class BusySource final : public TwinsReads {
 public:
  BusySource(std::shared_ptr<TwinSource> twin, const ContentId& id) : TwinsReads(std::move(twin)), id_(id) {}
  std::string_view name() const override { return "busy"; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    if (busy && runs.front().id == id_) return Error{Errc::not_found, "busy: not now"};
    return twin_->read(manifest, runs, deadline, aid);
  }
  Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> runs) override {
    return busy && !runs.empty() && runs.front().id == id_ ? Readiness::busy : Readiness::ready;
  }
  std::atomic<bool> busy = true;

 private:
  const ContentId id_;
};

// A source that expects to lack the smallest blobs, and counts how many of their readers wait at once.
class LacksSmall final : public TwinsReads {
 public:
  LacksSmall(std::shared_ptr<TwinSource> twin, std::uint64_t small) : TwinsReads(std::move(twin)), small_(small) {}
  std::string_view name() const override { return "lacks small"; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    if (runs.front().id.length > small_) return twin_->read(manifest, runs, deadline, aid);
    const int now = ++reads_;
    at_once = std::max(at_once.load(), now);
    auto got = twin_->read(manifest, runs, deadline, aid);
    --reads_;
    return got;
  }
  void evicted() override { ++evictions; }
  Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> runs) override {
    return !runs.empty() && runs.front().id.length <= small_ ? Readiness::lacking : Readiness::ready;
  }
  std::atomic<int> at_once = 0;
  std::atomic<int> evictions = 0;

 private:
  const std::uint64_t small_;
  std::atomic<int> reads_ = 0;
};

// A source that cannot be read.
class BrokenSource final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "broken"; }
  Result<SourceBytes> read(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/, Deadline /*deadline*/,
                           ReadAid& /*aid*/) override {
    ++asked;
    return Error{error, "broken: no bytes"};
  }
  Errc error = Errc::unreachable;
  std::atomic<int> asked = 0;
};

// A source that sends no bytes before it was asked for their digests.
class ProvesFirst final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "proves first"; }
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override {
    const int now = ++asked;
    if (now <= fails) return Error{Errc::timed_out, "proves first: no answer"};
    return twin_->chunks(manifest, id, deadline);
  }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    while (asked == 0 && Deadline::clock::now() < deadline) std::this_thread::sleep_for(1ms);
    ++reads;
    return asked > 0 ? twin_->read(manifest, runs, deadline, aid)
                     : Result<SourceBytes>(Error{Errc::timed_out, "proves first: nobody asked for digests"});
  }
  std::atomic<int> asked = 0, reads = 0;
  int fails = 0;
};

// A source whose reads last until their deadline. The first giver sends a wrong byte; later ones send the right bytes.
class LateAndWrongFirst final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "late and wrong first"; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    auto got = twin_->read(manifest, runs, deadline, aid);
    REQUIRE(got.ok());
    if (deadlines.empty()) got->memory[0] ^= std::byte{1};
    got->givers.assign(1, static_cast<std::uint32_t>(deadlines.size()));
    deadlines.push_back(deadline);
    std::this_thread::sleep_until(deadline);
    return got;
  }
  bool refuted(std::uint32_t giver) override { return giver == 0; }
  std::vector<Deadline> deadlines;
};

// A source whose arrived() blocks until end() is called.
class TellsSlowly final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "tells slowly"; }
  void arrived(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) override { told_.wait(); }
  void end() { may_end_.set_value(); }

 private:
  std::promise<void> may_end_;
  std::shared_future<void> told_ = may_end_.get_future().share();
};

std::uint64_t bytes_of(std::span<const ChunkRun> runs) {
  std::uint64_t bytes = 0;
  for (const ChunkRun& run : runs) bytes += run.length();
  return bytes;
}

// Returns how many of these runs the fetcher would serve to other nodes.
std::size_t given_of(Fetcher& fetcher, std::span<const ChunkRun> runs) {
  const auto places = fetcher.here(runs);
  REQUIRE(places.ok());
  return static_cast<std::size_t>(
      std::ranges::count_if(*places, [](const OpenPlace& place) { return place.pack != nullptr; }));
}

FetchOptions quick() {
  FetchOptions options;
  options.patience = 300ms;
  return options;
}

}  // namespace

TEST_CASE("fetched bytes equal the source's, at any range") {
  Away away({100, 5 * kDigestChunk + 17, 70'000, 3, kDigestChunk});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  for (const Range range : {Range{0, 1}, Range{90, 100}, Range{3 * kDigestChunk, 2 * kDigestChunk}, Range{99, 1},
                            Range{0, away.file.size}}) {
    const auto pieces = away.bring(fetcher, range);
    REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
    CHECK(away.text(*pieces, range) == away.bytes.substr(range.offset, range.length));
  }
  CHECK(fetcher.status().manifests == 1);
}

TEST_CASE("a range moves its own chunks alone, and each once") {
  Away away({20 * kDigestChunk});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  REQUIRE(away.bring(fetcher, {9 * kDigestChunk, 10}).ok());
  CHECK(away.twin->bytes_read() <= 4 * kDigestChunk);
  REQUIRE(away.bring(fetcher, {0, away.file.size}).ok());
  REQUIRE(away.bring(fetcher, {0, away.file.size}).ok());
  CHECK(away.twin->bytes_read() == away.file.size);
}

TEST_CASE("chunks equal to the base are copied locally, without a request to a source") {
  constexpr std::uint64_t kChunks = 40, kSame = 30;
  Away away({kChunks * kDigestChunk + 5});
  std::atomic<int> damaged = 0;
  FetchOptions options;
  options.damaged = [&](const ContentId&) { ++damaged; };
  Fetcher fetcher(away.store, away.store, {away.twin}, options);
  const Range all{0, away.file.size};
  REQUIRE(away.bring(fetcher, all).ok());
  REQUIRE(fetcher.wait_indexed(away.version).ok());
  const std::uint64_t before = away.twin->bytes_read();
  std::uint64_t same = 0;
  int damages = 0;
  SUBCASE("the base is whole") {
    same = kSame - 1;
  }
  SUBCASE("a chunk of the base is damaged") {
    damages = 1;
    const auto place = away.store.open_blob(away.file.extents.front().id);
    REQUIRE(place.ok());
    const std::string path = away.store.pack_path(place->pack->id());
    std::string pack = read_text(path);
    for (std::uint64_t chunk = 0; chunk < kSame; ++chunk) pack[place->offset + chunk * kDigestChunk + 7] ^= 1;
    write_file(path, pack);
  }
  SUBCASE("no base is wanted") {
    fetcher.set_policy({UINT64_MAX, ColdPolicy::automatic, false});
  }
  away.change({kSame * kDigestChunk});
  REQUIRE(away.bring(fetcher, {0, 1}).ok());
  const auto pieces = away.bring(fetcher, all);
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, all) == away.bytes);
  CHECK(fetcher.status().coded.same_bytes == same * kDigestChunk);
  CHECK(same * kDigestChunk + away.twin->bytes_read() - before == all.length);
  CHECK(damaged == damages);
}

TEST_CASE("one chunk of each blob is fetched before its common chunks with the base are known") {
  constexpr std::uint64_t kBlobs = 6, kChunks = 9, kSame = 7;
  Away away(std::vector<std::size_t>(kBlobs, kChunks * kDigestChunk));
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  const Range all{0, away.file.size};
  REQUIRE(away.bring(fetcher, all).ok());
  REQUIRE(fetcher.wait_indexed(away.version).ok());
  const std::uint64_t before = away.twin->bytes_read();
  away.change(std::vector<std::uint64_t>(kBlobs, kSame * kDigestChunk));
  REQUIRE(fetcher.bring({away.version, 0, all, 0, true}).ok());
  for (int tries = 0; tries < 1000 && fetcher.status().waiting > 0; ++tries) std::this_thread::sleep_for(10ms);
  const auto pieces = away.bring(fetcher, all);
  REQUIRE(pieces.ok());
  CHECK(away.text(*pieces, all) == away.bytes);
  CHECK(away.twin->bytes_read() - before <= kBlobs * (kChunks - kSame + 1) * kDigestChunk);
  CHECK(away.twin->bytes_read() - before >= kBlobs * (kChunks - kSame) * kDigestChunk);
}

TEST_CASE("a base that is still being fetched is not used") {
  Away away({20 * kDigestChunk});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  REQUIRE(away.bring(fetcher, {0, 12 * kDigestChunk}).ok());
  away.change({15 * kDigestChunk});
  const Range all{0, away.file.size};
  const auto pieces = away.bring(fetcher, all);
  REQUIRE(pieces.ok());
  CHECK(away.text(*pieces, all) == away.bytes);
  CHECK(fetcher.status().coded.same_bytes == 0);
}

TEST_CASE("bytes that the publisher of a new version lacks are waited for, and those of an old version are not") {
  Away away({3 * kDigestChunk});
  const ContentId id = away.file.extents.front().id;
  away.twin->lose(id);
  const Range all{0, away.file.size};
  {
    Fetcher fetcher(away.store, away.store, {away.twin}, {});
    const auto old = away.bring(fetcher, all);
    REQUIRE(!old.ok());
    CHECK(old.error().code == Errc::not_found);
  }
  away.publish(now_ns());
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  auto reading = std::async(std::launch::async, [&] { return away.bring(fetcher, all); });
  std::this_thread::sleep_for(50ms);
  const auto bytes = as_bytes(away.bytes);
  away.twin->put(id, {bytes.begin(), bytes.end()});
  const auto pieces = reading.get();
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, all) == away.bytes);
}

TEST_CASE("a source that fails does not hide that the publisher of a new version lacks its bytes for now") {
  Away away({3 * kDigestChunk});
  const ContentId id = away.file.extents.front().id;
  away.twin->lose(id);
  away.publish(now_ns());
  const auto broken = std::make_shared<BrokenSource>(away.twin);
  std::vector<std::shared_ptr<BlobSource>> sources = {away.twin, broken};
  std::size_t number = 0;  // index of the publisher in `sources`
  SUBCASE("it is unreachable") {}
  SUBCASE("it cannot read") {
    broken->error = Errc::io;
  }
  SUBCASE("it is asked first") {
    std::ranges::reverse(sources);
    number = 1;
  }
  Fetcher fetcher(away.store, away.store, sources, {});
  const Range all{0, away.file.size};
  auto reading = std::async(std::launch::async, [&] { return away.bring(fetcher, all); });
  while (broken->asked < 3) std::this_thread::sleep_for(1ms);
  const auto bytes = as_bytes(away.bytes);
  away.twin->put(id, {bytes.begin(), bytes.end()});
  const auto pieces = reading.get();
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, all) == away.bytes);
  const auto counts = fetcher.status().sources;
  CHECK(counts.at(number).failures == 0);
  CHECK(counts.at(number).reads >= 3);  // the bytes may come before the third one
  CHECK(counts.at(1 - number).failures >= 3);
}

TEST_CASE("bytes of a new version that never come are one failure") {
  Away away({kDigestChunk});
  away.twin->lose(away.file.extents.front().id);
  away.publish(now_ns());
  FetchOptions options;
  options.patience = 1s;  // much longer than the pause between two attempts
  Fetcher fetcher(away.store, away.store, {away.twin}, options);
  const auto none = away.bring(fetcher, {0, away.file.size});
  REQUIRE(!none.ok());
  CHECK(none.error().code == Errc::not_found);
  const auto count = fetcher.status().sources.at(0);
  CHECK(count.failures == 1);
  CHECK(count.reads > 1);
}

TEST_CASE("many readers of one missing range cause one transfer") {
  Away away({9 * kDigestChunk + 5});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i)
    readers.emplace_back([&] {
      const Range all{0, away.file.size};
      const auto pieces = away.bring(fetcher, all);
      CHECK(pieces.ok());
      if (pieces.ok()) CHECK(away.text(*pieces, all) == away.bytes);
    });
  for (std::thread& reader : readers) reader.join();
  CHECK(away.twin->bytes_read() == away.file.size);
  CHECK(fetcher.status().sources.at(0).bytes == away.file.size);
}

TEST_CASE("local bytes count as local; prefetched bytes count once, under their source") {
  Away away({4 * kDigestChunk, 1'000});
  const Range all{0, away.file.size};
  {
    Fetcher fetcher(away.store, away.store, {away.twin}, {});
    REQUIRE(away.bring(fetcher, {0, kDigestChunk}, away.file.size - kDigestChunk).ok());
    while (fetcher.status().sources.at(0).bytes < away.file.size) std::this_thread::sleep_for(1ms);
    REQUIRE(away.bring(fetcher, {kDigestChunk, away.file.size - kDigestChunk}).ok());
    CHECK(fetcher.status().local.bytes == 0);
    REQUIRE(away.bring(fetcher, {10, 5 * 100}).ok());
    CHECK(fetcher.status().local.bytes == 500);
    REQUIRE(fetcher.wait_indexed(away.version).ok());
  }
  Fetcher later(away.store, away.store, {}, {});
  REQUIRE(away.bring(later, all).ok());
  CHECK(later.status().local.bytes == away.file.size);
  CHECK(later.status().local.reads == 1);
}

TEST_CASE("fetched bytes are added to the store in a pack that is laid out as the file") {
  Away away({3 * kDigestChunk, 500});
  {
    Fetcher fetcher(away.store, away.store, {away.twin}, {});
    REQUIRE(away.bring(fetcher, {0, away.file.size}).ok());
    REQUIRE(fetcher.wait_indexed(away.version).ok());
    CHECK(away.store.adds == 1);
  }
  const auto first = away.store.open_blob(away.file.extents[0].id);
  const auto second = away.store.open_blob(away.file.extents[1].id);
  REQUIRE((first.ok() && second.ok()));
  CHECK(first->pack->id() == second->pack->id());
  CHECK(second->offset == away.file.extents[1].offset);
  Fetcher later(away.store, away.store, {}, {});
  const Range all{0, away.file.size};
  CHECK(away.text(away.bring(later, all).value(), all) == away.bytes);
}

TEST_CASE("let_go() closes idle transfers and keeps their complete blobs in the store") {
  Away away({3 * kDigestChunk, 5 * kDigestChunk});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  REQUIRE(away.bring(fetcher, {0, 4 * kDigestChunk}).ok());
  fetcher.let_go();
  CHECK(away.store.adds == 1);
  CHECK(fetcher.status().transfers == 0);
  CHECK(away.store.open_blob(away.file.extents[0].id).ok());
  const Range all{0, away.file.size};
  CHECK(away.text(away.bring(fetcher, all).value(), all) == away.bytes);
}

TEST_CASE("a pack whose bytes have come is let go at once, whatever waits in line for them") {
  for (int round = 0; round < 20; ++round) {
    Away away(std::vector<std::size_t>(400, 2'000));  // many units per request
    Fetcher fetcher(away.store, away.store, {away.twin}, {});
    REQUIRE(away.bring(fetcher, {0, away.file.size}).ok());
    fetcher.let_go();
    CHECK(fetcher.status().transfers == 0);
    CHECK(away.store.filled == 0);
  }
}

TEST_CASE("a complete pack is closed while its chunks are still being announced") {
  Away away({3 * kDigestChunk});
  const auto telling = std::make_shared<TellsSlowly>(away.twin);
  Fetcher fetcher(away.store, away.store, {telling}, {});
  REQUIRE(away.bring(fetcher, {0, away.file.size}).ok());
  fetcher.let_go();
  CHECK(away.store.filled == 0);
  telling->end();
}

TEST_CASE("a whole file comes whose end is here already") {
  Away away({3 * kDigestChunk, 1'000});
  Fetcher fetcher(away.store, away.store, {away.twin}, quick());
  REQUIRE(away.bring(fetcher, {3 * kDigestChunk, 1'000}).ok());
  REQUIRE(fetcher.wait_indexed(away.version).ok());
  ColdRange what{away.version, 0, {0, away.file.size}};
  what.all = true;
  const auto pieces = fetcher.bring(what);
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, what.range) == away.bytes);
}

TEST_CASE("a blob that is twice in a file moves once") {
  Away away({kDigestChunk + 1, 1000});
  Away twice({});
  for (const std::size_t i : {0U, 1U, 0U}) {
    const Extent& extent = away.file.extents[i];
    const auto part = away.bytes.substr(extent.offset, extent.id.length);
    const auto view = as_bytes(part);
    twice.append({view.begin(), view.end()});
  }
  twice.publish();
  Fetcher fetcher(twice.store, twice.store, {twice.twin}, {});
  const Range all{0, twice.file.size};
  CHECK(twice.text(twice.bring(fetcher, all).value(), all) == twice.bytes);
  CHECK(twice.twin->bytes_read() == away.file.size);
}

TEST_CASE("bytes that do not verify are not served, and the next source is asked") {
  Away away({2 * kDigestChunk, 300});
  const auto bad = std::make_shared<TwinSource>();
  for (const Extent& extent : away.file.extents) {
    auto wrong = random_bytes(extent.id.length, 99);
    bad->put(extent.id, std::move(wrong));
  }
  const Range all{0, away.file.size};
  {
    Fetcher fetcher(away.store, away.store, {bad}, quick());
    CHECK(!away.bring(fetcher, all).ok());
  }
  Fetcher fetcher(away.store, away.store, {bad, away.twin}, {});
  CHECK(away.text(away.bring(fetcher, all).value(), all) == away.bytes);
  CHECK(fetcher.status().sources.at(0).bytes == 0);
  CHECK(fetcher.status().sources.at(0).failures > 0);
}

TEST_CASE("only verified chunks are announced and served") {
  Away away({2 * kDigestChunk, 300});
  const ContentId large = away.file.extents[0].id;
  const std::vector<ChunkRun> runs{{large, 0, 1}, {large, 1, 1}, {away.file.extents[1].id, 0, 1}};
  away.twin->change(large, [](auto& stored) { stored.bytes[kDigestChunk] ^= std::byte{1}; });
  {
    Fetcher fetcher(away.store, away.store, {away.twin}, quick());
    CHECK(!away.bring(fetcher, {0, away.file.size}).ok());
    CHECK(away.bring(fetcher, {0, 10}).ok());
    CHECK(away.bring(fetcher, {2 * kDigestChunk, 10}).ok());
    CHECK(given_of(fetcher, std::span(&runs[1], 1)) == 0);
    CHECK(given_of(fetcher, runs) == 2);
  }  // the destructor announces the rest
  CHECK(bytes_of(away.twin->announced()) == kDigestChunk + 300);
  for (const ChunkRun& run : away.twin->announced()) CHECK_FALSE((run.id == large && run.first + run.count > 1));
}

TEST_CASE("if the first source is silent, the next one is used in bounded time") {
  Away away({2 * kDigestChunk, 300});
  const auto silent = std::make_shared<TwinSource>();
  for (const Extent& extent : away.file.extents) {
    const auto part = as_bytes(away.bytes).subspan(extent.offset, extent.id.length);
    silent->put(extent.id, {part.begin(), part.end()});
    silent->change(extent.id, [](auto& stored) { stored.hangs = true; });
  }
  const Range all{0, away.file.size};
  const auto begin = Deadline::clock::now();
  Fetcher fetcher(away.store, away.store, {silent, away.twin}, quick());
  const auto pieces = away.bring(fetcher, all);
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(Deadline::clock::now() - begin < 10 * quick().patience);
  CHECK(away.text(*pieces, all) == away.bytes);
  CHECK(fetcher.status().sources.at(0).failures > 0);
  CHECK(fetcher.status().sources.at(0).bytes == 0);
  CHECK(fetcher.status().sources.at(1).bytes == away.file.size);
}

TEST_CASE("ReadAid::came is called before the verification, and not for a failed read") {
  Away away({2 * kDigestChunk});
  VerifiedSource source(away.twin);
  const std::vector<ChunkRun> runs{{away.file.extents[0].id, 0, 2}};
  ReadAid aid;
  int came = 0;
  aid.came = [&] { ++came; };
  CHECK(source.read({}, runs, deadline_in(5s), aid).ok());
  CHECK(came == 1);
  away.twin->change(runs[0].id, [](auto& stored) { stored.bytes[0] ^= std::byte{1}; });
  CHECK(!source.read({}, runs, deadline_in(5s), aid).ok());
  CHECK(came == 2);
  away.twin->lose(runs[0].id);
  CHECK(!source.read({}, runs, deadline_in(5s), aid).ok());
  CHECK(came == 2);
}

TEST_CASE("bytes that came late and were wrong leave time to read them again") {
  Away away({300});
  const auto late = std::make_shared<LateAndWrongFirst>(away.twin);
  VerifiedSource source(late);
  const ChunkRun run{away.file.extents[0].id, 0, 1};
  CHECK(source.read({}, std::span(&run, 1), deadline_in(20ms)).ok());
  REQUIRE(late->deadlines.size() == 2);
  CHECK(late->deadlines[1] > late->deadlines[0]);
}

TEST_CASE("digests of a blob of several chunks are asked for while its bytes come, once for all its readers") {
  Away away({4 * kDigestChunk, 100});
  const auto first = std::make_shared<ProvesFirst>(away.twin);
  VerifiedSource source(first);
  const ContentId id = away.file.extents[0].id;
  std::vector<std::thread> readers;
  std::atomic<int> good = 0;
  for (std::uint64_t chunk = 0; chunk < 4; ++chunk)
    readers.emplace_back([&, chunk] {
      const ChunkRun run{id, chunk, 1};
      if (source.read({}, std::span(&run, 1), deadline_in(5s)).ok()) ++good;
    });
  for (std::thread& reader : readers) reader.join();
  CHECK(good == 4);
  CHECK(first->asked == 1);
  const ChunkRun small{away.file.extents[1].id, 0, 1};
  CHECK(source.read({}, std::span(&small, 1), deadline_in(5s)).ok());
  CHECK(first->asked == 1);  // a blob of one chunk is verified by its root
}

TEST_CASE("a failed request for digests is repeated after the bytes have arrived") {
  Away away({2 * kDigestChunk});
  const auto first = std::make_shared<ProvesFirst>(away.twin);
  first->fails = 1;
  VerifiedSource source(first);
  const ChunkRun run{away.file.extents[0].id, 0, 2};
  CHECK(source.read({}, std::span(&run, 1), deadline_in(5s)).ok());
  CHECK(first->asked == 2);
  CHECK(first->reads == 1);
}

TEST_CASE("a source that hangs costs a bounded wait, and is asked again when it is back") {
  Away away({kDigestChunk, 300});
  Fetcher fetcher(away.store, away.store, {away.twin}, quick());
  REQUIRE(fetcher.resolve(away.version).ok());
  away.twin->change(away.file.extents[0].id, [](auto& stored) { stored.hangs = true; });
  const auto stuck = away.bring(fetcher, {0, 10});
  REQUIRE(!stuck.ok());
  CHECK(stuck.error().code == Errc::timed_out);
  away.twin->let_go();
  const Range all{0, away.file.size};
  auto again = away.bring(fetcher, all);
  REQUIRE(again.ok());
  CHECK(away.text(*again, all) == away.bytes);
}

TEST_CASE("a reader that is no longer wanted does not wait for a source that hangs") {
  Away away({kDigestChunk});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  REQUIRE(fetcher.resolve(away.version).ok());
  away.twin->change(away.file.extents[0].id, [](auto& stored) { stored.hangs = true; });
  std::atomic<int> looks = 0;
  const ColdWait wait([&looks] { return ++looks < 3; });
  const auto left = away.bring(fetcher, {0, 10});
  away.twin->let_go();
  REQUIRE(!left.ok());
  CHECK(left.error().code == Errc::cancelled);
}

TEST_CASE("a part whose source is silent is waited for while other parts of the file come, and not much longer") {
  Away away(std::vector<std::size_t>(800, 1000));
  const Extent& hangs = away.file.extents[0];
  away.twin->change(hangs.id, [](auto& stored) { stored.hangs = true; });
  Fetcher fetcher(away.store, away.store, {away.twin}, quick());
  auto reader = std::async(std::launch::async, [&] { return away.bring(fetcher, {0, 10}); });
  const auto until = Deadline::clock::now() + 4 * quick().patience;
  for (std::size_t i = 1; i < 800 && Deadline::clock::now() < until; ++i) {
    CHECK(away.bring(fetcher, {away.file.extents[i].offset, 10}).ok());
    CHECK(reader.wait_for(10ms) == std::future_status::timeout);
  }
  CHECK(reader.wait_for(20 * quick().patience) == std::future_status::ready);
  const auto late = reader.get();
  REQUIRE(!late.ok());
  CHECK(late.error().code == Errc::timed_out);
  away.twin->let_go();
  CHECK(away.bring(fetcher, {0, 10}).ok());
}

TEST_CASE("bytes that no source has keep half of the workers waiting, and the others fetch what can come") {
  constexpr std::size_t kSmall = 1000, kBlobs = 12;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < kBlobs; ++i) lengths.push_back(i % 2 == 0 ? kSmall : kDigestChunk);
  Away away(lengths);
  for (const Extent& extent : away.file.extents)
    if (extent.id.length == kSmall) away.twin->change(extent.id, [](auto& stored) { stored.hangs = true; });
  const auto source = std::make_shared<LacksSmall>(away.twin, kSmall);
  Fetcher fetcher(away.store, away.store, {source}, {});
  const Range all{0, away.file.size};
  auto reader = std::async(std::launch::async, [&] { return away.bring(fetcher, all); });
  while (away.twin->bytes_read() < kBlobs / 2 * kDigestChunk && reader.wait_for(1ms) == std::future_status::timeout) {
  }
  CHECK(away.twin->bytes_read() == kBlobs / 2 * kDigestChunk);
  away.twin->let_go();
  const auto pieces = reader.get();
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, all) == away.bytes);
  CHECK(source->at_once == static_cast<int>(FetchOptions().threads / 2));
}

TEST_CASE("sources hear of an eviction that took packs, and of no other") {
  Away away({300});
  const auto source = std::make_shared<LacksSmall>(away.twin, 0);
  Fetcher fetcher(away.store, away.store, {source}, {});
  EvictOptions options;
  REQUIRE(fetcher.evict(options).ok());
  CHECK(source->evictions == 0);
  away.store.evicts.packs = 2;
  options.dry_run = true;
  REQUIRE(fetcher.evict(options).ok());
  CHECK(source->evictions == 0);
  options.dry_run = false;
  CHECK(fetcher.evict(options).value().packs == 2);
  CHECK(source->evictions == 1);
}

TEST_CASE("an eviction that frees no space is not repeated before some space is free") {
  constexpr std::uint64_t kTotal = 100 * kDigestChunk;
  Away away({kDigestChunk, kDigestChunk, kDigestChunk});
  std::atomic<std::uint64_t> available = 0;
  FetchOptions options;
  options.disk = [&available] { return DiskSpace{kTotal, available, 0}; };
  const auto source = std::make_shared<LacksSmall>(away.twin, 0);
  Fetcher fetcher(away.store, away.store, {source}, options);
  away.store.evicts.packs = 1;  // a pack that a mount has open
  REQUIRE(away.bring(fetcher, {0, 10}).ok());
  CHECK(source->evictions == 1);
  std::this_thread::sleep_for(300ms);  // the lack of space is remembered for a moment
  REQUIRE(away.bring(fetcher, {kDigestChunk, 10}).ok());
  CHECK(source->evictions == 1);
  available = kTotal / 20 + 1;
  std::this_thread::sleep_for(300ms);
  REQUIRE(away.bring(fetcher, {2 * kDigestChunk, 10}).ok());
  CHECK(source->evictions == 2);
}

TEST_CASE("a unit that timed out for one reader gets the full patience for the next one") {
  Away away({1000, 1000}), same({1000, 1000});
  const ContentId late = away.file.extents[0].id;
  away.twin->change(late, [](auto& stored) { stored.hangs = true; });
  const auto busy = std::make_shared<BusySource>(same.twin, late);
  FetchOptions options;
  options.patience = 600ms;
  Fetcher fetcher(away.store, away.store, {away.twin, busy}, options);
  auto first = std::async(std::launch::async, [&] { return away.bring(fetcher, {0, 10}); });
  std::this_thread::sleep_for(100ms);
  CHECK(away.bring(fetcher, {1000, 10}).ok());
  CHECK(!first.get().ok());
  std::this_thread::sleep_for(options.patience / 2);  // it is overdue by now
  auto second = std::async(std::launch::async, [&] { return away.bring(fetcher, {0, 10}); });
  CHECK(second.wait_for(50ms) == std::future_status::timeout);
  busy->busy = false;
  CHECK(second.get().ok());
}

TEST_CASE("a reader of a unit whose sources have been silent to others has its own patience") {
  Away away({kDigestChunk, 1000});
  away.twin->change(away.file.extents[1].id, [](auto& stored) { stored.hangs = true; });
  FetchOptions options;
  options.patience = 600ms;
  Fetcher fetcher(away.store, away.store, {away.twin}, options);
  REQUIRE(away.bring(fetcher, {0, 10}, kDigestChunk).ok());  // and the second unit is read ahead
  std::this_thread::sleep_for(options.patience * 3 / 4);
  auto reader = std::async(std::launch::async, [&] { return away.bring(fetcher, {kDigestChunk, 10}); });
  CHECK(reader.wait_for(options.patience / 2) == std::future_status::timeout);
  away.twin->let_go();
  CHECK(reader.get().ok());
}

TEST_CASE("without anybody to ask a read says so at once") {
  Away away({1000});
  Fetcher fetcher(away.store, away.store, {}, {});
  const auto none = away.bring(fetcher, {0, 10});
  REQUIRE(!none.ok());
  CHECK(none.error().code == Errc::unreachable);
}

TEST_CASE("ranges beyond a file and files beyond a version are refused") {
  Away away({1000});
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  CHECK(away.bring(fetcher, {999, 2}).error().code == Errc::invalid);
  CHECK(away.bring(fetcher, {UINT64_MAX, 2}).error().code == Errc::invalid);
  CHECK(fetcher.bring({away.version, 1, {0, 1}, 0}).error().code == Errc::invalid);
  CHECK(fetcher.bring({away.version + 1, 0, {0, 1}, 0}).error().code == Errc::not_found);
}

TEST_CASE("bytes that the store cannot keep are read all the same") {
  Away away({kDigestChunk});
  away.store.no_room = Error{Errc::no_space, "full"};
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  const Range all{0, away.file.size};
  CHECK(away.text(away.bring(fetcher, all).value(), all) == away.bytes);
  CHECK(fetcher.wait_indexed(away.version).error().code == Errc::no_space);
}

TEST_CASE("bytes that the disk has no space for pass to their readers, and a part of the disk stays free") {
  constexpr std::uint64_t kTotal = 100 * kDigestChunk;
  Away away(std::vector<std::size_t>(8, kDigestChunk));
  std::atomic<std::uint64_t> available = kTotal / 20 + kDigestChunk / 2;  // less than one chunk beside the reserve
  FetchOptions options;
  options.disk = [&available] { return DiskSpace{kTotal, available, 0}; };
  Fetcher fetcher(away.store, away.store, {away.twin}, options);
  CHECK(fetcher.advice().keeps < kDigestChunk);
  const Range some{10, 3 * kDigestChunk};
  for (int i = 0; i < 2; ++i) {
    const auto pieces = away.bring(fetcher, some);
    REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
    for (const Run& piece : *pieces) CHECK(piece.place.pack->id() == kPassingPack);
    CHECK(away.text(*pieces, some) == away.bytes.substr(some.offset, some.length));
  }
  CHECK(fetcher.status().sources.at(0).bytes == 4 * kDigestChunk);  // the second request moved nothing
  CHECK(away.store.adds == 0);
  CHECK(fetcher.bring({away.version, 0, {0, away.file.size}, 0, true}).error().code == Errc::no_space);
  available = kTotal;
  const Range all{0, away.file.size};
  std::this_thread::sleep_for(300ms);  // the lack of space is remembered for a moment
  const auto pieces = fetcher.bring({away.version, 0, all, 0, true});
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  for (const Run& piece : *pieces) CHECK(piece.place.pack->id() != kPassingPack);
  CHECK(away.text(*pieces, all) == away.bytes);
}

TEST_CASE("bytes pass if the disk has no space for a new file, and are kept once it has") {
  Away away({kDigestChunk, 1'000});
  away.store.no_pack = Error{Errc::no_space, "full"};
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  const Range all{0, away.file.size};
  const auto passed = away.bring(fetcher, all);
  REQUIRE_MESSAGE(passed.ok(), (passed.ok() ? "" : passed.error().message));
  for (const Run& piece : *passed) CHECK(piece.place.pack->id() == kPassingPack);
  CHECK(away.text(*passed, all) == away.bytes);
  CHECK(fetcher.bring({away.version, 0, all, 0, true}).error().code == Errc::no_space);
  away.store.no_pack = {};
  std::this_thread::sleep_for(1s);  // the transfer ends
  const auto kept = fetcher.bring({away.version, 0, all, 0, true});
  REQUIRE_MESSAGE(kept.ok(), (kept.ok() ? "" : kept.error().message));
  for (const Run& piece : *kept) CHECK(piece.place.pack->id() != kPassingPack);
  CHECK(away.text(*kept, all) == away.bytes);
}

TEST_CASE("small files pass if the disk has no space for a new file") {
  AwayTree away(20, 300);
  away.store.no_pack = Error{Errc::no_space, "full"};
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  for (std::uint32_t file = 0; file < 20; ++file) CHECK(away.text(fetcher, file) == away.texts[file]);
}

TEST_CASE("bytes that have passed are fetched again for a request that is too long to pass") {
  Away away(std::vector<std::size_t>(6, kDigestChunk));
  std::atomic<std::uint64_t> available = 0;
  FetchOptions options;
  options.disk = [&available] { return DiskSpace{100 * kDigestChunk, available, 0}; };
  Fetcher fetcher(away.store, away.store, {away.twin}, options);
  REQUIRE(away.bring(fetcher, {0, 10}).ok());
  fetcher.let_go();  // the next request begins another transfer
  const Range all{0, away.file.size};
  REQUIRE(all.length > kPassMax);
  CHECK(away.bring(fetcher, all).error().code == Errc::no_space);
  available = 100 * kDigestChunk;
  std::this_thread::sleep_for(300ms);  // the lack of space is remembered for a moment
  const auto pieces = away.bring(fetcher, all);
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  for (const Run& piece : *pieces) CHECK(piece.place.pack->id() != kPassingPack);
  CHECK(away.text(*pieces, all) == away.bytes);
}

TEST_CASE("bytes that have passed are fetched again if they are dropped before a reader takes them") {
  Away away({kDigestChunk, 1'000});
  FetchOptions options;
  options.kept = 400ms;
  options.disk = [] { return DiskSpace{100 * kDigestChunk, 0, 0}; };
  Fetcher fetcher(away.store, away.store, {std::make_shared<SlowSource>(away.twin, 1s)}, options);
  REQUIRE(away.bring(fetcher, {0, 10}).ok());
  fetcher.let_go();  // the next request begins another transfer
  const Range all{0, away.file.size};
  const auto pieces = away.bring(fetcher, all);  // it moves the small unit itself, and the chunk is dropped meanwhile
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, all) == away.bytes);
  CHECK(away.twin->bytes_read() > away.file.size);
}

TEST_CASE("many small files share packs and requests, in whatever order they are read") {
  constexpr std::size_t kFiles = 6'000;
  AwayTree away(kFiles, 300);
  std::vector<std::uint32_t> order(kFiles);
  std::iota(order.begin(), order.end(), 0);
  SUBCASE("in order") {}
  SUBCASE("backwards") {
    std::ranges::reverse(order);
  }
  SUBCASE("shuffled") {
    std::ranges::shuffle(order, std::mt19937_64(test_seed()));
  }
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  const std::size_t before = open_descriptors();
  std::size_t most = 0;
  for (const std::uint32_t file : order) {
    CHECK(away.text(fetcher, file) == away.texts[file]);
    if (file % 64 == 0) most = std::max(most, open_descriptors() - before);
  }
  CHECK(most < 40);
  CHECK(away.twin->reads() < kFiles / 10);
  REQUIRE(fetcher.wait_indexed(away.version).ok());
  Fetcher later(away.store, away.store, {}, {});
  for (std::uint32_t file = 0; file < kFiles; file += 100) CHECK(away.text(later, file) == away.texts[file]);
}

TEST_CASE("a reader of one small file moves its bytes alone") {
  AwayTree away(500, 2'000);
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  CHECK(away.text(fetcher, 77) == away.texts[77]);
  CHECK(away.text(fetcher, 77) == away.texts[77]);
  fetcher.let_go();
  CHECK(away.twin->bytes_read() == away.texts[77].size());
}

TEST_CASE("a small file whose bytes are nowhere keeps no other file from its readers") {
  constexpr std::uint32_t kFiles = 400;
  AwayTree away(kFiles, 300);
  std::vector<std::uint32_t> lost;
  for (std::uint32_t file = 0; file < kFiles; file += 50) {
    lost.push_back(file);
    away.lose(file);
  }
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  std::vector<std::thread> readers;
  for (std::uint32_t reader = 0; reader < 4; ++reader)
    readers.emplace_back([&, reader] {
      for (std::uint32_t i = 0; i < kFiles; ++i) {
        const std::uint32_t file = (i + reader * kFiles / 4) % kFiles;
        const bool is_lost = std::ranges::binary_search(lost, file);
        CHECK(fetcher.bring({away.version, file, {0, away.texts[file].size()}, 0}).ok() == !is_lost);
      }
    });
  for (std::thread& reader : readers) reader.join();
  for (std::uint32_t file = 1; file < kFiles; file += 7)
    if (!std::ranges::binary_search(lost, file)) CHECK(away.text(fetcher, file) == away.texts[file]);
}

TEST_CASE("a worker fetches the files of a group again one by one after their reader's request for all has failed") {
  AwayTree away(20, 300);
  away.lose(15);
  Fetcher fetcher(away.store, away.store, {std::make_shared<SlowSource>(away.twin, 100ms)}, {});
  const auto fetch = [&](std::uint32_t file) {
    return fetcher.bring({away.version, file, {0, away.texts[file].size()}, 0});
  };
  CHECK(fetch(0).ok());
  CHECK(fetch(1).ok());
  auto reader = std::async(std::launch::async, [&] { return fetch(2); });  // and what follows
  const bool ended = reader.wait_for(5s) == std::future_status::ready;
  CHECK(ended);
  if (!ended) static_cast<void>(fetch(3));  // wakes a worker
  CHECK(reader.get().ok());
}

TEST_CASE("files that are too large to share packs keep the number of open transfers within its bound") {
  constexpr std::size_t kFiles = 3 * kOpenTransfersMax;
  AwayTree away(kFiles, kGroupedFileMax);
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  for (std::uint32_t file = 0; file < kFiles; ++file) {
    CHECK(away.text(fetcher, file) == away.texts[file]);
    CHECK(fetcher.status().transfers <= kOpenTransfersMax);
  }
}

TEST_CASE("blocks of zeros are holes of the pack") {
  Away away({});
  std::vector<std::byte> blob(64 * kDigestChunk);
  std::ranges::copy(random_bytes(50'000, 1), blob.begin() + 20 * kDigestChunk + 77);
  away.append(blob);
  away.publish();
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  const Range all{0, away.file.size};
  const auto pieces = away.bring(fetcher, all);
  REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
  CHECK(away.text(*pieces, all) == away.bytes);
  const auto st = stat_fd(pieces->front().place.pack->fd(), "pack");
  REQUIRE(st.ok());
  CHECK(st->st_size == static_cast<off_t>(away.file.size));
  CHECK(st->st_blocks * 512 < 1 << 20);
}

TEST_CASE("random ranges of a random file, by several threads, are its bytes") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 30; ++i) sizes.push_back(1 + random() % (random() % 5 == 0 ? 3 * kDigestChunk : 9000));
  Away away(sizes);
  Fetcher fetcher(away.store, away.store, {away.twin}, {});
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int reader = 0; reader < 4; ++reader)
    readers.emplace_back([&, start = random()] {
      std::mt19937_64 mine(start);
      for (int i = 0; i < 40; ++i) {
        const std::uint64_t offset = mine() % away.file.size;
        const Range range{offset, std::min<std::uint64_t>(1 + mine() % 200'000, away.file.size - offset)};
        const auto pieces = away.bring(fetcher, range, mine() % 2 == 0 ? 4 * kDigestChunk : 0);
        const bool same = pieces.ok() && away.text(*pieces, range) == away.bytes.substr(range.offset, range.length);
        if (!same) ++wrong;
      }
    });
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(away.twin->bytes_read() <= away.file.size);
}

}  // namespace weft::testing

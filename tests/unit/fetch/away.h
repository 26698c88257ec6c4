// Versions whose bytes are in a twin source and not in the store, and sources that read from a twin in their own way.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "caching_store.h"
#include "fakes/twin_source.h"
#include "fetch/fetcher.h"
#include "os/sys.h"
#include "testing.h"
#include "weft/model/manifest.h"

namespace weft::testing {

// A version of one file. Its bytes are in a twin source and not in the store.
struct Away {
  CachingStore store;
  std::shared_ptr<TwinSource> twin = std::make_shared<TwinSource>();
  std::string bytes;
  File file;
  VersionId version = 0;

  explicit Away(const std::vector<std::size_t>& sizes) {
    file.path = "model.bin";
    for (const std::size_t size : sizes) append(random_bytes(size, bytes.size() + 1));
    publish();
  }
  void append(std::vector<std::byte> blob) {
    const ContentId id{blob.size(), tree_sha256(blob)};
    file.extents.push_back({bytes.size(), id});
    bytes += as_text(blob);
    twin->put(id, std::move(blob));
    store.add_absent(id);
  }
  void publish(std::uint64_t time_ns = 0) {
    file.size = bytes.size();
    const auto manifest = encode_manifest({{file}, {}});
    REQUIRE(manifest.ok());
    twin->put_manifest(sha256(*manifest), *manifest);
    version = store.add_version(sha256(*manifest), "", time_ns);
  }
  // Replaces the version by its next one. Each blob has new bytes from its offset in `offsets` on.
  void change(const std::vector<std::uint64_t>& offsets) {
    const std::string before = std::exchange(bytes, "");
    const auto extents = std::exchange(file.extents, {});
    for (std::size_t i = 0; i < extents.size(); ++i) {
      auto blob = random_bytes(extents[i].id.length, 1000 + i);
      std::ranges::copy(as_bytes(before).subspan(extents[i].offset, offsets[i]), blob.begin());
      append(std::move(blob));
    }
    publish();
  }
  Result<std::vector<Run>> bring(Fetcher& fetcher, Range range, std::uint64_t ahead = 0) const {
    return fetcher.bring({version, 0, range, ahead});
  }
  // Returns the bytes of the pieces, which must cover the range.
  std::string text(const std::vector<Run>& pieces, Range range) const {
    std::string out(range.length, '?');
    REQUIRE(!pieces.empty());
    std::uint64_t at = range.offset;
    for (const Run& piece : pieces) {
      if (at >= range.offset + range.length) break;
      REQUIRE(piece.offset <= at);
      const std::uint64_t within = at - piece.offset;
      REQUIRE(within < piece.length);
      const std::uint64_t part = std::min(piece.length - within, range.offset + range.length - at);
      auto into = std::as_writable_bytes(std::span(out)).subspan(at - range.offset, part);
      REQUIRE(read_exact(piece.place.pack->fd(), piece.place.offset + within, into, "piece").ok());
      at += part;
    }
    CHECK(at == range.offset + range.length);
    return out;
  }
};

// Base class of sources that read from a twin in their own way.
class TwinsReads : public BlobSource {
 public:
  explicit TwinsReads(std::shared_ptr<TwinSource> twin) : twin_(std::move(twin)) {}
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override {
    return twin_->manifest(digest, deadline);
  }
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override {
    return twin_->chunks(manifest, id, deadline);
  }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    return twin_->read(manifest, runs, deadline, aid);
  }

 protected:
  const std::shared_ptr<TwinSource> twin_;
};

}  // namespace weft::testing

// Where bytes can be had that are not on this node: the origin now, other nodes.
//
// Trust: none. A source returns bytes as a disk or a peer gave them. Only src/fetch/verified_source.h calls a source,
// and it checks them. Threads: every call from any thread; calls may run at once. Waiting: a call returns by its
// deadline with Errc::timed_out; signs of life put the deadline off (src/peers/README.md). Work may go on behind, on
// its own memory. Errors: Errc::not_found: this source does not have it (now). Errc::unreachable: nobody is there to
// ask. Errc::corrupt, Errc::io: it has it and cannot give it. After each of them the next source is asked.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/deadline.h"
#include "weft/manifest.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Whole chunks (weft/content.h) of one blob: `count` from number `first` on; at least one.
struct ChunkRun {
  ContentId id;
  std::uint64_t first = 0;
  std::uint64_t count = 1;

  std::uint64_t offset() const { return first * kDigestChunk; }  // of the blob; bytes
  std::uint64_t length() const {
    const std::uint64_t end = (first + count) * kDigestChunk;
    return (end < id.length ? end : id.length) - offset();
  }
};

// One chunk of some runs.
struct RunChunk {
  std::size_t run = 0;      // its number
  std::uint64_t chunk = 0;  // number in the blob
  std::size_t at = 0;       // in the bytes of all runs, one after the other
  std::size_t length = 0;
};
inline std::vector<RunChunk> chunks_of(std::span<const ChunkRun> runs) {
  std::vector<RunChunk> out;
  std::size_t at = 0;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (std::uint64_t chunk = 0; chunk < runs[run].count; ++chunk) {
      const ChunkRun one{runs[run].id, runs[run].first + chunk, 1};
      out.push_back({run, one.first, at, static_cast<std::size_t>(one.length())});
      at += out.back().length;
    }
  return out;
}

// So much is asked for at once, at most.
inline constexpr std::uint64_t kSourceReadMax = 16U << 20U;

// The giver of a chunk that came in parts from several givers, or from an earlier source.
inline constexpr std::uint32_t kSeveralGivers = UINT32_MAX;

// Bytes that a source has given, in memory that is theirs alone.
struct SourceBytes {
  std::shared_ptr<std::byte[]> memory;
  std::size_t size = 0;
  std::vector<std::uint32_t> givers;    // of each chunk, for refuted(); empty when the source has but one
  std::vector<std::size_t> coded = {};  // the numbers of the chunks that were coded against ReadAid::bases, in order
  std::function<void()> proved = {};    // to be called if all digests are right; may be empty
  std::span<const std::byte> bytes() const { return {memory.get(), size}; }
};

// What the reader holds at the place of a run: the same chunks of a blob of the same length, locked. A source may give
// the difference instead of the bytes (base/chunk_codec.h).
struct RunBase {
  ContentId id;
  std::uint8_t width = 0;  // bytes of an element: 1, 2, 4 or 8
  OpenPlace place;         // of the run's first chunk; no pack: the run has no base
};

// Nodes hear of a version before the index of its publisher has its bytes. What that node lacks may be there in a
// moment, for so long from `now_ns` on, by the clocks of both.
inline std::chrono::nanoseconds youth_left(const VersionRow& version, std::uint64_t now_ns) {
  constexpr std::uint64_t kYouth = 30'000'000'000;  // ns
  const std::uint64_t age = std::max(now_ns, version.time_ns) - std::min(now_ns, version.time_ns);
  return std::chrono::nanoseconds(kYouth - std::min(age, kYouth));
}

// How chunks with a base came.
struct CodedCounts {
  std::uint64_t asked = 0;        // chunks
  std::uint64_t coded = 0;        // of them, that came coded
  std::uint64_t plain = 0;        // of them, that came plain
  std::uint64_t failed = 0;       // that came coded and were of no use: they came again, plain
  std::uint64_t asked_bytes = 0;  // of the chunks
  std::uint64_t given_bytes = 0;  // that came for them
  std::uint64_t same_bytes = 0;   // of chunks that the base has too: nobody was asked for these
  std::uint64_t elements = 0;     // of coded chunks, and of samples of plain ones
  std::uint64_t changed = 0;      // of these, that differ from the base
  CodedCounts& operator+=(const CodedCounts& other) {
    asked += other.asked;
    coded += other.coded;
    plain += other.plain;
    failed += other.failed;
    asked_bytes += other.asked_bytes;
    given_bytes += other.given_bytes;
    same_bytes += other.same_bytes;
    elements += other.elements;
    changed += other.changed;
    return *this;
  }
};

// The first bytes of all runs, which earlier sources gave before they fell silent.
struct KeptBytes {
  std::shared_ptr<const std::byte[]> memory;
  std::size_t bytes = 0;
};

// What a source may make use of while it reads.
struct ReadAid {
  // The caller can take others first: Errc::exists for what another node was just given, and will soon give itself;
  // Errc::busy while who has it gives to enough others.
  bool yields = false;
  // Called while the read waits, at each sign that its bytes can come. False: nobody wants them any more, and the read
  // ends with Errc::cancelled. May be empty.
  std::function<bool()> is_wanted;
  // Called when all have come and before they are verified: who gave them is free for others. May be empty.
  std::function<void()> came;
  std::vector<RunBase> bases = {};  // none, or one for each run
  // A coded chunk has a wrong digest: whether the base of this run has other bytes than it should have in this chunk of
  // the blob. Empty: no base has.
  std::function<bool(const RunBase& base, std::uint64_t chunk)> is_damaged = {};
  CodedCounts coded = {};  // set by who reads
  // The version and the file, for messages: "bert@1: model.safetensors". May be empty.
  std::string subject = {};
  KeptBytes kept = {};  // a source goes on behind these bytes, and leaves what it has got when it fails
  // A chunk that came in parts from several givers was wrong: each chunk comes from one giver now.
  bool whole_chunks = false;
};

// Whether a source can read some runs at once, or without any the manifest, by what it knows without asking anybody.
// Dear: it can, but others are about to have them too, and would take them from each other.
enum class Readiness : std::uint8_t { ready, dear, busy, lacking };

class BlobSource {
 public:
  virtual ~BlobSource() = default;
  virtual std::string_view name() const = 0;  // "origin"; for messages and counts

  virtual Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) = 0;
  // The digests of all chunks of a blob that the version of this manifest has.
  virtual Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) = 0;
  // The bytes of these runs, one after the other; kSourceReadMax in all at most.
  virtual Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                   ReadAid& aid) = 0;
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline) {
    ReadAid none;
    return read(manifest, runs, deadline, none);
  }

  // These blobs of a version are about to be read; without its manifest, that is about to be. May wait a little.
  virtual void expect(const VersionRow& /*version*/, const Manifest* /*manifest*/,
                      std::span<const ContentId> /*blobs*/) {}
  // These have come from somewhere, and are verified.
  virtual void arrived(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) {}
  virtual Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) {
    return Readiness::ready;
  }
  // How many may have a run, by what it knows without asking anybody: what few have is best brought first.
  virtual std::size_t givers(const Digest& /*manifest*/, const ChunkRun& /*run*/) { return 1; }
  // It makes use of ReadAid::bases.
  virtual bool codes() const { return false; }
  // A chunk came coded and was wrong, and its base is sound: who gave it gives plain bytes from now on.
  virtual void miscoded(std::uint32_t /*giver*/) {}
  // A chunk that came was wrong: who gave it is not asked again for a while. False: there is nobody else to ask.
  virtual bool refuted(std::uint32_t /*giver*/) { return false; }
};

}  // namespace weft

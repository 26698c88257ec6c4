// Sources of bytes that are not on this node: the origin (origin/source.cc), and other nodes (peers/source.cc).
//
// Trust: none. A source returns bytes as a disk or a peer gave them. Only src/fetch/verified_source.h calls a source,
// and it checks them. Threads: every call from any thread; calls may run at once. Waiting: a call returns by its
// deadline with Errc::timed_out; signs of life move the deadline (src/peers/README.md). Work may continue afterwards,
// in its own memory. Errors: Errc::not_found: this source does not have the bytes (now). Errc::unreachable: nobody
// answers. Errc::corrupt, Errc::io: the source has the bytes and cannot read them. After each of these errors the
// caller tries the next source.
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

#include "weft/bytes/pack.h"
#include "weft/bytes/traffic.h"
#include "weft/content.h"
#include "weft/deadline.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Whole chunks (weft/content.h) of one blob: `count` chunks from number `first` on; at least one.
struct ChunkRun {
  ContentId id;
  std::uint64_t first = 0;
  std::uint64_t count = 1;

  std::uint64_t offset() const { return first * kDigestChunk; }  // in the blob, bytes
  std::uint64_t length() const {
    const std::uint64_t end = (first + count) * kDigestChunk;
    return (end < id.length ? end : id.length) - offset();
  }
};

// One chunk of a list of runs.
struct RunChunk {
  std::size_t run = 0;      // index of its run
  std::uint64_t chunk = 0;  // its number in the blob
  std::size_t at = 0;       // offset in the concatenated bytes of all runs
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

// Largest request to a source, bytes.
inline constexpr std::uint64_t kSourceReadMax = 16U << 20U;

// The giver of a chunk that came in parts, from several givers or partly from an earlier source.
inline constexpr std::uint32_t kSeveralGivers = UINT32_MAX;

// The bytes that a source returned, in memory of their own.
struct SourceBytes {
  std::shared_ptr<std::byte[]> memory;
  std::size_t size = 0;
  std::vector<std::uint32_t> givers;    // of each chunk, for refuted(); empty if the source is the only giver
  std::vector<std::size_t> coded = {};  // indexes of chunks that were coded against ReadAid::bases, ascending
  std::function<void()> proved = {};    // call if all digests are right; may be empty
  std::span<const std::byte> bytes() const { return {memory.get(), size}; }
};

// The reader's base for a run: the same chunks of another blob of the same length, in an open pack. A source may send
// the difference instead of the bytes (base/chunk_codec.h).
struct RunBase {
  ContentId id;
  std::uint8_t width = 0;  // bytes of an element: 1, 2, 4 or 8
  OpenPlace place;         // of the run's first chunk; without a pack the run has no base
};

// Returns for how long after `now_ns` the publisher may still lack bytes of its new version. Nodes hear of a version
// before its publisher's index has the blobs. Compares the clocks of two nodes.
inline std::chrono::nanoseconds youth_left(const VersionRow& version, std::uint64_t now_ns) {
  constexpr std::uint64_t kYouth = 30'000'000'000;  // ns
  const std::uint64_t age = std::max(now_ns, version.time_ns) - std::min(now_ns, version.time_ns);
  return std::chrono::nanoseconds(kYouth - std::min(age, kYouth));
}

// Counts of chunks that have a base.
struct CodedCounts {
  std::uint64_t asked = 0;        // requested chunks
  std::uint64_t coded = 0;        // of these, chunks that came coded
  std::uint64_t plain = 0;        // of these, chunks that came plain
  std::uint64_t failed = 0;       // coded chunks that were unusable, and came again plain
  std::uint64_t asked_bytes = 0;  // bytes of the requested chunks
  std::uint64_t given_bytes = 0;  // bytes that were transferred for them
  std::uint64_t same_bytes = 0;   // bytes of chunks that equal their base, and were not requested
  std::uint64_t elements = 0;     // elements of coded chunks, and of samples of plain ones
  std::uint64_t changed = 0;      // of these, elements that differ from the base
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

// The first bytes of all runs, from earlier sources that fell silent.
struct KeptBytes {
  std::shared_ptr<const std::byte[]> memory;
  std::size_t bytes = 0;
};

class OfferedUnit;  // weft/bytes/swarm.h

// Options of a read, and state that its attempts share.
struct ReadAid {
  Traffic traffic = Traffic::foreground;
  // Called during the read. True: by now a reader waits for the bytes, so that the rest is traffic of foreground. May
  // be empty.
  std::function<bool()> is_waited_for = {};
  // Called during the wait, at each sign that the bytes can come. False: no reader wants them any more, and the read
  // ends with Errc::cancelled. May be empty.
  std::function<bool()> is_wanted;
  // Called when the last byte has arrived, before verification: the source can take another read. May be empty.
  std::function<void()> came;
  std::vector<RunBase> bases = {};  // none, or one for each run
  // Called if a coded chunk has a wrong digest. Returns true if the base of this run is damaged in this chunk of the
  // blob. Empty: no base is damaged.
  std::function<bool(const RunBase& base, std::uint64_t chunk)> is_damaged = {};
  CodedCounts coded = {};  // set by the source
  // Version and file, for messages: "bert@1: model.safetensors". May be empty.
  std::string subject = {};
  KeptBytes kept = {};  // a source continues after these bytes; if it fails, it stores here what it has
  // Each chunk must come from one giver, because a chunk that came in parts from several givers was wrong.
  bool whole_chunks = false;
  // How long a rate of this node (src/pace) has held the read back while none of its bytes were on their way. Set by
  // the source.
  std::chrono::nanoseconds held{0};
  // The unit of a swarm that has these runs. The source reads the bytes from the sender of the unit alone. A unit has
  // one read at a time.
  std::shared_ptr<OfferedUnit> offered = {};
};

// A guess without a message, whether a source can begin a read of some runs (or of the manifest, if there are none)
// now. `busy`: every giver that may have the bytes has several reads of this node already, or is overloaded, so that a
// further read would wait in the source. The fetcher keeps such reads in its queue, where those of readers go first, or
// asks another source. `lacking`: no giver is known to have the bytes, or all were silent or wrong a moment ago.
enum class Readiness : std::uint8_t { ready, busy, lacking };

// True for the errors of a source or peer that did not answer. Any other error is an answer.
inline bool was_silent(const Error& error) {
  return error.code == Errc::timed_out || error.code == Errc::unreachable;
}

class BlobSource {
 public:
  virtual ~BlobSource() = default;
  virtual std::string_view name() const = 0;  // "origin"; for messages and counters

  virtual Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) = 0;
  // Returns the digests of all chunks of a blob in the version with this manifest.
  virtual Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) = 0;
  // Returns the concatenated bytes of these runs, at most kSourceReadMax.
  virtual Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                   ReadAid& aid) = 0;
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline) {
    ReadAid none;
    return read(manifest, runs, deadline, none);
  }

  // Announces a read of these blobs of a version; without blobs, a read of its manifest. May wait a little.
  virtual void expect(const VersionRow& /*version*/, std::span<const ContentId> /*blobs*/) {}
  // Announces that these runs have arrived, from any source, and are verified.
  virtual void arrived(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) {}
  // Announces that fetched packs were evicted, so that chunks of earlier arrived() calls may be gone.
  virtual void evicted() {}
  virtual Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) {
    return Readiness::ready;
  }
  // True if the source uses ReadAid::bases.
  virtual bool codes() const { return false; }
  // True if the source uses ReadAid::offered.
  virtual bool reads_offers() const { return false; }
  // True if the source reads the units that swarms offer by name (OfferedUnit::by_name): the origin.
  virtual bool reads_named() const { return false; }
  // A coded chunk was wrong although its base is intact. The giver sends plain bytes from now on.
  virtual void miscoded(std::uint32_t /*giver*/) {}
  // A chunk was wrong. The giver is skipped for a while. False: there is no other giver.
  virtual bool refuted(std::uint32_t /*giver*/) { return false; }
};

}  // namespace weft

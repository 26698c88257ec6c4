// The requests and answers of daemons as values. Decoding checks every rule of this file and of peers.fbs, because the
// bytes are hostile. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/chunk_codec.h"
#include "peers/swarm_messages.h"
#include "weft/bytes/source.h"
#include "weft/bytes/traffic.h"
#include "weft/cluster/key_change.h"
#include "weft/cluster/pulled.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// The number of runs that fit into one request, whatever their values.
inline constexpr std::size_t kRunsPerRequest = 90;

inline constexpr std::uint64_t kDigestsAtOnceMax = kSourceReadMax / sizeof(Digest);

struct AskManifest {
  Digest digest;
  std::uint64_t offset = 0;
};
struct AskChunks {
  ChunkRun run;  // kDigestsAtOnceMax chunks at most
};
struct AskedBase {
  Digest root;
  std::uint8_t width = 0;  // 0: the run has no base; else is_coding_width()
  bool operator==(const AskedBase&) const = default;
};
struct AskBytes {
  std::vector<ChunkRun> runs;  // 1 to kRunsPerRequest of non-empty blobs, kSourceReadMax bytes in all at most
  Traffic traffic = Traffic::foreground;
  // Empty, or a base for each run, whose blob has the same length; then limits::kBasesPerRequestMax runs at most. With
  // bases, the head of the answer begins with a table (decode_given), and chunks may come coded.
  std::vector<AskedBase> bases = {};
  CodingEffort effort = CodingEffort::none;  // `none` exactly if there are no bases
  bool must_code = false;                    // Errc::absent if a base is not local
  std::uint32_t skip = 0;                    // bytes of the first chunk that the asker has; 0 with bases
  std::string subject = {};                  // for the log: the version and the file; at most kSubjectBytesMax
  std::uint64_t length() const {             // requested bytes
    std::uint64_t bytes = 0;
    for (const ChunkRun& run : runs) bytes += run.length();
    return bytes - skip;
  }
};
inline constexpr std::size_t kSubjectBytesMax = 256;
struct Announce {
  Digest manifest;
  bool whole = false;  // the caller has all bytes of the version; false: no longer
  bool operator==(const Announce&) const = default;
};
struct AskHolders {
  Digest manifest;
};
struct AskHealth {
  std::vector<Digest> manifests = {};  // limits::kHealthManifestsMax at most
  bool operator==(const AskHealth&) const = default;
};
struct KeepVersion {
  std::string model;  // check_model_name() accepts it
  std::uint64_t number = 0;
  bool operator==(const KeepVersion&) const = default;
};
// PulledAsk: check_pulled() accepts it. KeyOrder: a known step, a name of hexadecimal digits, and a key of
// limits::kKeyFileMax bytes at most exactly if the step is `accept`.
using PeerRequest = std::variant<AskManifest, AskChunks, AskBytes, Announce, AskHolders, Join, Want, PulledAsk,
                                 KeyOrder, AskHealth, KeepVersion>;

std::vector<std::byte> encode_request(const PeerRequest& request);
// Errc::invalid if the bytes are no request, or one of an unknown kind.
Result<PeerRequest> decode_request(std::span<const std::byte> bytes);

// The answer to AskHolders: ids of nodes, at most limits::kHoldersMax, each once.
std::vector<std::byte> encode_holders(const std::vector<std::string>& nodes);
Result<std::vector<std::string>> decode_holders(std::span<const std::byte> bytes);

// The state of a version on a node: it has all bytes of the version; its list of versions that are not at the origin
// lacks this one, which says something about its own versions only; the bytes stay, because the version is pinned.
inline constexpr std::uint8_t kStateWhole = 1, kStateSaved = 2, kStatePinned = 4;

// The answer to AskHealth.
struct PeerHealth {
  std::uint64_t clock_ns = 0;
  std::uint64_t free_bytes = 0, disk_bytes = 0;
  std::uint64_t reserve_bytes = 0;
  std::uint64_t unsaved = 0;
  std::vector<std::uint8_t> states = {};  // of the first manifests: bits kState…
  bool operator==(const PeerHealth&) const = default;
};
std::vector<std::byte> encode_health(const PeerHealth& facts);
// Errc::invalid: more states than manifests, or no state of any.
Result<PeerHealth> decode_health(std::span<const std::byte> bytes, const AskHealth& ask);

// The table at the start of the head of an answer to AskBytes with bases: how many bytes each chunk takes.
struct GivenChunks {
  std::vector<std::uint32_t> sizes;  // of each chunk of the runs: its length for plain bytes, less if it is coded
  std::uint64_t coded_bytes = 0;     // of all coded chunks
  std::uint64_t plain_bytes = 0;
  std::size_t head_bytes() const { return sizes.size() * sizeof(std::uint32_t); }
};
std::vector<std::byte> encode_given(std::span<const std::uint32_t> sizes);
// Errc::corrupt: a table that ends early, a size of 0 or above the chunk's, a coded chunk of a run without a base.
Result<GivenChunks> decode_given(std::span<const std::byte> head, const AskBytes& ask);

// The head of the answer to PulledAsk. Errc::corrupt: not the state of as many pieces as the question demands.
std::vector<std::byte> encode_received(std::span<const std::uint32_t> got);
Result<std::vector<std::uint32_t>> decode_received(std::span<const std::byte> head, const PulledAsk& ask);

// The answer to AskChunks: the digests as plain bytes. Errc::corrupt if these are no whole number of digests.
std::vector<std::byte> encode_digests(std::span<const Digest> digests);
Result<std::vector<Digest>> decode_digests(std::span<const std::byte> bytes);

}  // namespace weft

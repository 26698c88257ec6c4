// Bytes that a pull has received, or copied from another node's, and not published yet (blobs/pulled.cc checks their
// bounds). pull/served_pulls.cc gives those of this node, and nodes that wait in line for the claim of the pull ask for
// them (pull/following.cc). Their truth is unknown: the node that publishes them compares their digest.
//
// A file has pieces of kPieceBytes, each filled from its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kPieceBytes = 8U << 20U;
inline constexpr std::uint32_t kPulledBytesMax = 4U << 20U;  // of one answer
inline constexpr std::size_t kPulledPiecesMax = 1024;        // whose state one answer has

struct PulledAsk {
  std::string key;           // of the pull: limits::kClaimDigits hexadecimal digits
  std::string path;          // of the file below the area of the pull, limits::kPathMax bytes at most
  Digest note;               // of the wanted content at this path (pull/received_note.h)
  std::uint64_t size = 0;    // of the file
  std::uint64_t offset = 0;  // below `size`
  std::uint32_t length = 0;  // bytes, kPulledBytesMax at most; 0: the question is about the state of pieces alone
  bool operator==(const PulledAsk&) const = default;

  std::uint64_t piece() const { return offset / kPieceBytes; }
  std::size_t pieces() const;  // whose state the answer has, from piece() on
};
// Returns the bytes that a piece of a file of this size has.
std::uint64_t piece_length(std::uint64_t size, std::uint64_t piece);
bool is_claim_key(std::string_view key);
// Errc::invalid: the values are out of bounds.
Status check_pulled(const PulledAsk& ask);

struct PulledPart {
  std::vector<std::uint32_t> got;  // received bytes of each piece from PulledAsk::piece() on
  std::vector<std::byte> bytes;    // from PulledAsk::offset on: of that piece, perhaps fewer than were asked for
};
// Errc::corrupt: such an answer has other bounds.
Status check_pulled(const PulledAsk& ask, const PulledPart& part);

// Any thread.
class PulledFiles {
 public:
  virtual ~PulledFiles() = default;
  // Errc::not_found: there is no such pull or file, or the import has taken the file. Errc::busy: ask later.
  // Errc::unreachable, Errc::timed_out: the other node or process does not answer.
  virtual Result<PulledPart> read(const PulledAsk& ask) = 0;
};

}  // namespace weft

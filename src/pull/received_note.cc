#include "pull/received_note.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <array>
#include <numeric>
#include <span>
#include <string>

#include "base/sha256.h"
#include "pull/hub_digest.h"

namespace weft {
namespace {

constexpr std::size_t kNoteEach = 4;  // bytes for each piece

}  // namespace

Digest note_of(const HubFile& wanted) {
  const std::string text = fmt::format("{} {}", HubDigest::expected(wanted), wanted.path);
  return sha256(std::as_bytes(std::span(text)));
}

Result<std::vector<std::uint32_t>> read_received(const Fd& note, const SafePath& path, std::uint64_t size,
                                                 std::uint64_t first, std::size_t count) {
  std::vector<std::uint32_t> received(count);
  std::vector<std::byte> bytes(count * kNoteEach);
  WEFT_TRY(const std::size_t there, read_some(note.get(), first * kNoteEach, bytes, path));
  for (std::size_t i = 0; i < there / kNoteEach; ++i) {
    std::uint32_t got = 0;
    for (std::size_t k = kNoteEach; k > 0; --k)
      got = got << 8U | static_cast<std::uint32_t>(bytes[i * kNoteEach + k - 1]);
    received[i] = got <= piece_length(size, first + i) ? got : 0;
  }
  return received;
}

Status write_received(const Fd& note, const SafePath& path, std::uint64_t piece, std::uint32_t got) {
  std::array<std::byte, kNoteEach> bytes{};
  for (unsigned k = 0; k < kNoteEach; ++k) bytes[k] = static_cast<std::byte>(got >> (8U * k));
  return write_exact(note.get(), piece * kNoteEach, bytes, path);
}

std::uint64_t received_bytes(const SafePath& files, const SafePath& notes, const HubFile& wanted) {
  const auto there = stat_file(files / wanted.path);
  if (!there.ok() || !S_ISREG(there->st_mode) || static_cast<std::uint64_t>(there->st_size) != wanted.size) return 0;
  const SafePath path = notes / to_hex(note_of(wanted));
  const auto note = open_file(path, O_RDONLY);
  if (!note.ok()) return note.error().code == Errc::not_found ? wanted.size : 0;
  const auto pieces = read_received(*note, path, wanted.size, 0, (wanted.size + kPieceBytes - 1) / kPieceBytes);
  return pieces.ok() ? std::accumulate(pieces->begin(), pieces->end(), std::uint64_t{0}) : 0;
}

}  // namespace weft

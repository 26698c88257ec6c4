#include "pull/received_note.h"

#include <fmt/core.h>

#include <array>
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

}  // namespace weft

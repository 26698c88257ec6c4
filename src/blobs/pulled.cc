#include "weft/cluster/pulled.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace weft {

std::uint64_t piece_length(std::uint64_t size, std::uint64_t piece) {
  const std::uint64_t begin = piece * kPieceBytes;
  return begin < size ? std::min(kPieceBytes, size - begin) : 0;
}

std::size_t PulledAsk::pieces() const {
  const std::uint64_t all = size / kPieceBytes + (size % kPieceBytes == 0 ? 0 : 1);
  return static_cast<std::size_t>(std::min<std::uint64_t>(kPulledPiecesMax, all - std::min(all, piece())));
}

bool is_claim_key(std::string_view key) {
  const auto is_digit = [](char c) { return hex_value(c) >= 0 && (c < 'A' || c > 'F'); };
  return key.size() == limits::kClaimDigits && std::ranges::all_of(key, is_digit);
}

Status check_pulled(const PulledAsk& ask) {
  const auto refused = [](std::string why) { return Error{Errc::invalid, fmt::format("bytes of a pull: {}", why)}; };
  if (!is_claim_key(ask.key)) return refused(fmt::format("key: expected {} hexadecimal digits", limits::kClaimDigits));
  if (ask.path.empty() || ask.path.size() > limits::kPathMax)
    return refused(fmt::format("a path of {} bytes", ask.path.size()));
  if (ask.size > limits::kVersionBytesMax || ask.offset >= ask.size)
    return refused(fmt::format("offset {} in a file of {} bytes", ask.offset, ask.size));
  if (ask.length > kPulledBytesMax)
    return refused(fmt::format("expected at most {} bytes to be asked for, got {}", kPulledBytesMax, ask.length));
  return {};
}

Status check_pulled(const PulledAsk& ask, const PulledPart& part) {
  const auto wrong = [](std::string why) { return Error{Errc::corrupt, fmt::format("bytes of a pull: {}", why)}; };
  if (part.got.size() != ask.pieces())
    return wrong(fmt::format("expected the state of {} pieces, got {}", ask.pieces(), part.got.size()));
  for (std::size_t i = 0; i < part.got.size(); ++i)
    if (part.got[i] > piece_length(ask.size, ask.piece() + i))
      return wrong(fmt::format("{} bytes in piece {}", part.got[i], ask.piece() + i));
  const std::uint64_t begin = ask.offset % kPieceBytes;
  const std::uint64_t there = part.got.front() - std::min<std::uint64_t>(part.got.front(), begin);
  if (part.bytes.size() > std::min<std::uint64_t>(ask.length, there))
    return wrong(fmt::format("expected at most {} bytes, got {}", std::min<std::uint64_t>(ask.length, there),
                             part.bytes.size()));
  return {};
}

}  // namespace weft

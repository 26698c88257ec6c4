#include "peers/peer_pulls.h"

#include <fmt/core.h>

#include <chrono>

#include "base/text.h"
#include "peers/messages.h"
#include "peers/read.h"

namespace weft {
namespace {

constexpr auto kPullPatience = std::chrono::seconds(3);

std::uint64_t bytes_of(const Answer& answer, std::uint64_t bytes_max) {
  std::uint64_t bytes = 0;
  for (std::size_t window = 0; window < answer.windows(); ++window) {
    if (answer.length(window) > bytes_max - bytes) return bytes_max + 1;
    bytes += answer.length(window);
  }
  return bytes;
}

}  // namespace

Result<PulledPart> PeerPulls::read(const std::string& node, const PulledAsk& ask) {
  WEFT_CHECK(check_pulled(ask));
  const auto address = links_.address(node);
  if (!address) return Error{Errc::unreachable, fmt::format("{} is no node of the cluster now", printable(node))};
  const OnSign on_sign = [] { return true; };
  WEFT_TRY(const auto answer, exchange_.call(*address, encode_request(ask), deadline_in(kPullPatience), on_sign));
  PulledPart part;
  WEFT_TRY(part.got, decode_received(answer->head(), ask));
  const std::uint64_t bytes = bytes_of(*answer, ask.length);
  if (bytes > ask.length)
    return Error{Errc::corrupt, fmt::format("peer: expected at most {} bytes, got more", ask.length)};
  part.bytes.resize(bytes);
  WEFT_CHECK(check_pulled(ask, part));
  if (bytes == 0) return part;
  PeerTarget target{.memory = part.bytes, .landing = nullptr};
  WEFT_CHECK(
      read_windows(exchange_, *answer, 0, target, {links_.pace(links_.number_of(node)), kPullPatience, on_sign, {}}));
  return part;
}

}  // namespace weft

#include "net/transport/checks.h"

#include <fmt/core.h>

namespace weft::net {

Status check_message(std::span<const std::byte> message) {
  if (!message.empty() && message.size() <= kMessageBytesMax) return {};
  return Error{Errc::invalid,
               fmt::format("a message: expected 1 to {} bytes, got {}", kMessageBytesMax, message.size())};
}

Status check_read(const RemoteWindow& window, std::uint64_t offset, const Landing& landing, std::size_t at,
                  std::size_t length) {
  const std::size_t room = landing.bytes().size();
  if (length == 0 || at > room || length > room - at)
    return Error{Errc::invalid, fmt::format("a read of {} bytes to {} of {}: does not fit", length, at, room)};
  if (offset > window.length || length > window.length - offset)
    return Error{Errc::permission,
                 fmt::format("a read of {} bytes at {} of a window of {}: not in it", length, offset, window.length)};
  return {};
}

}  // namespace weft::net

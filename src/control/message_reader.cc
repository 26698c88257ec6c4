#include "control/message_reader.h"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "base/limits.h"

namespace weft::control {

void MessageReader::feed(std::span<const std::byte> bytes, std::vector<Fd> fds) {
  bytes_.erase(0, std::exchange(at_, 0));
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::move(fds.begin(), fds.end(), std::back_inserter(fds_));
}

// Returns nothing, or an error if descriptors are left. A read from a socket ends behind the bytes that carried
// descriptors, so they belong to the last message of a feed.
Result<std::optional<Message>> MessageReader::none_yet() const {
  if (fds_.empty()) return std::optional<Message>();
  return Error{Errc::invalid, fmt::format("a connection: {} descriptors without the end of a message", fds_.size())};
}

Result<std::optional<Message>> MessageReader::next() {
  const std::size_t left = bytes_.size() - at_;
  if (left < kLengthBytes) return none_yet();
  std::size_t length = 0;
  for (unsigned i = 0; i < kLengthBytes; ++i)
    length |= std::size_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
  if (length > limits::kControlMessageMax)
    return Error{Errc::invalid, fmt::format("a control message: expected at most {} bytes, got {}",
                                            limits::kControlMessageMax, length)};
  if (left - kLengthBytes < length) return none_yet();
  WEFT_TRY(Message message, parse_message(std::string_view(bytes_).substr(at_ + kLengthBytes, length)));
  at_ += kLengthBytes + length;
  if (message.fd_count == 0) return std::optional(std::move(message));
  if (message.fd_count != fds_.size() || has_part())
    return Error{Errc::invalid, fmt::format("a control message: expected {} descriptors with its end, got {}",
                                            message.fd_count, fds_.size())};
  message.fds = std::exchange(fds_, {});
  return std::optional(std::move(message));
}

}  // namespace weft::control

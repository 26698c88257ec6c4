#include "control/message_reader.h"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "base/limits.h"
#include "base/unix_socket.h"

namespace weft::control {

Status MessageReader::feed(std::span<const std::byte> bytes, std::vector<Fd> fds) {
  bytes_.erase(0, std::exchange(at_, 0));
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::move(fds.begin(), fds.end(), std::back_inserter(fds_));
  // Those of a message that is not whole yet, and those that came with its end.
  if (fds_.size() > 2 * kFdsAtOnceMax)
    return Error{Errc::invalid, fmt::format("a connection: {} descriptors without messages", fds_.size())};
  return {};
}

Result<std::optional<Message>> MessageReader::next() {
  const std::size_t left = bytes_.size() - at_;
  if (left < kLengthBytes) return std::optional<Message>();
  std::size_t length = 0;
  for (unsigned i = 0; i < kLengthBytes; ++i)
    length |= std::size_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
  if (length > limits::kControlMessageMax)
    return Error{Errc::invalid, fmt::format("a control message: expected at most {} bytes, got {}",
                                            limits::kControlMessageMax, length)};
  if (left - kLengthBytes < length) return std::optional<Message>();
  WEFT_TRY(Message message, parse_message(std::string_view(bytes_).substr(at_ + kLengthBytes, length)));
  at_ += kLengthBytes + length;
  if (message.fd_count > fds_.size())
    return Error{Errc::invalid, fmt::format("a control message: expected {} descriptors with it, got {}",
                                            message.fd_count, fds_.size())};
  for (; message.fds.size() < message.fd_count; fds_.pop_front()) message.fds.push_back(std::move(fds_.front()));
  return std::optional(std::move(message));
}

}  // namespace weft::control

#include "format/hdf5/header.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::string_view kObjectHeader = "object header";
constexpr std::string_view kHeaderChunk = "header continuation";
constexpr std::size_t kHeaderMin = 16;  // version 1 has so many bytes before its messages; version 2 is not shorter
constexpr std::uint64_t kHeaderSum = 4;

}  // namespace

Result<Hdf5Header> Hdf5Header::read(Hdf5File& file, std::uint64_t at) {
  Hdf5Header header;
  WEFT_CHECK(header.read_first(file, at));
  WEFT_CHECK(header.read_continuations(file));
  return header;
}

const Hdf5Message* Hdf5Header::find(Hdf5MessageType type) const {
  const auto found = std::ranges::find(messages_, type, &Hdf5Message::type);
  return found == messages_.end() ? nullptr : &*found;
}

Status Hdf5Header::read_first(Hdf5File& file, std::uint64_t at) {
  WEFT_TRY(const Hdf5Block begin, file.block(kObjectHeader, at, kHeaderMin));
  if (Hdf5File::check_signature(kObjectHeader, at, begin, "OHDR").ok()) return read_second_version(file, at, begin);
  Hdf5Fields head = file.fields(begin);
  if (head.number(1) != 1)
    return hdf5_error(fmt::format("{} at {}: expected version 1 or 2, got other bytes", kObjectHeader, at));
  head.skip(7);
  WEFT_TRY(Hdf5Block messages, file.more(kObjectHeader, at + kHeaderMin, head.number(4)));
  blocks_.push_back(std::move(messages));
  return add_messages(file, file.fields(blocks_.back()), at + kHeaderMin);
}

Status Hdf5Header::read_second_version(Hdf5File& file, std::uint64_t at, const Hdf5Block& begin) {
  Hdf5Fields head = file.fields(begin);
  head.skip(4);
  const std::uint64_t version = head.number(1), flags = head.number(1);
  if (version != 2) return hdf5_error(fmt::format("{} at {}: expected version 2, got {}", kObjectHeader, at, version));
  form_ = {true, (flags & 4U) != 0 ? 6U : 4U};
  const std::uint64_t fixed = head.position() + ((flags & 0x20U) != 0 ? 16U : 0U) + ((flags & 0x10U) != 0 ? 4U : 0U);
  WEFT_TRY(const Hdf5Block size, file.more(kObjectHeader, at + fixed, 1ULL << (flags & 3U)));
  const std::uint64_t first = fixed + size.size(), chunk = file.fields(size).number(size.size());
  std::uint64_t length = 0;
  if (__builtin_add_overflow(first + kHeaderSum, chunk, &length))
    return hdf5_error(fmt::format("{} at {} is past the end", kObjectHeader, at));
  WEFT_TRY(Hdf5Block whole, file.more(kObjectHeader, at, length));
  WEFT_CHECK(file.check_sum(kObjectHeader, at, whole));
  blocks_.push_back(std::move(whole));
  return add_messages(file, file.fields(std::span(blocks_.back()).subspan(first, chunk)), at + first);
}

// A continuation may name another one.
Status Hdf5Header::read_continuations(Hdf5File& file) {
  constexpr std::size_t kSignatureBytes = 4;
  std::uint64_t bytes_left =
      limits::kHdf5HeaderMax - std::min<std::uint64_t>(limits::kHdf5HeaderMax, blocks_[0].size());
  for (std::size_t i = 0; i < continuations_.size(); ++i) {
    const Chunk chunk = continuations_[i];
    if (chunk.length > bytes_left)
      return hdf5_error(fmt::format("{} at {}: expected headers of at most {} bytes", kHeaderChunk, chunk.at,
                                    limits::kHdf5HeaderMax));
    bytes_left -= chunk.length;
    WEFT_TRY(Hdf5Block bytes, file.block(kHeaderChunk, chunk.at, chunk.length));
    blocks_.push_back(std::move(bytes));
    std::span<const std::byte> messages = blocks_.back();
    std::uint64_t at = chunk.at;
    if (form_.checked) {
      WEFT_CHECK(Hdf5File::check_signature(kHeaderChunk, chunk.at, messages, "OCHK"));
      WEFT_CHECK(file.check_sum(kHeaderChunk, chunk.at, messages));
      if (messages.size() < kSignatureBytes + kHeaderSum) return hdf5_short(kHeaderChunk, chunk.at);
      messages = messages.subspan(kSignatureBytes, messages.size() - kSignatureBytes - kHeaderSum);
      at += kSignatureBytes;
    }
    WEFT_CHECK(add_messages(file, file.fields(messages), at));
  }
  return {};
}

// A header may end with a gap, which is shorter than the head of a message.
Status Hdf5Header::add_messages(Hdf5File& file, Hdf5Fields fields, std::uint64_t at) {
  while (fields.remaining() >= form_.head_bytes) {
    Hdf5Message message;
    message.type = static_cast<Hdf5MessageType>(fields.number(form_.checked ? 1 : 2));
    const std::uint64_t length = fields.number(2), flags = fields.number(1);
    fields.skip(form_.head_bytes - (form_.checked ? 4 : 5));
    message.shared = (flags & 2U) != 0;
    message.address = at + fields.position();
    message.body = fields.bytes(length);
    if (fields.ended())
      return hdf5_error(fmt::format("a message of {} bytes at {} is longer than its header", length, message.address));
    if (messages_.size() + continuations_.size() >= limits::kHdf5MessagesMax)
      return hdf5_error(fmt::format("expected object headers of at most {} messages", limits::kHdf5MessagesMax));
    if (message.type != Hdf5MessageType::continuation) {
      if (message.type != Hdf5MessageType{}) messages_.push_back(message);
      continue;
    }
    Hdf5Fields place = file.fields(message.body);
    continuations_.push_back({place.address(), place.length()});
    if (place.ended()) return hdf5_short(kHeaderChunk, message.address);
  }
  return {};
}

}  // namespace weft

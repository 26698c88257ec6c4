#include "diskformat/record.h"

#include <cstring>

#include <fmt/core.h>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::size_t kChecksumBytes = 8;

template <class Number>
void put_le(std::byte* at, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    at[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
}

template <class Number>
Number get_le(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return static_cast<Number>(value);
}

struct Header {
  std::uint64_t checksum;
  std::uint32_t length;
  std::uint16_t kind;
  std::uint16_t version;
};

Header read_header(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  return {get_le<std::uint64_t>(at), get_le<std::uint32_t>(at + 8), get_le<std::uint16_t>(at + 12),
          get_le<std::uint16_t>(at + 14)};
}

// Writes all header fields except the checksum.
void put_header(std::byte* at, RecordKind kind, std::size_t payload_bytes) {
  put_le(at + 8, static_cast<std::uint32_t>(payload_bytes));
  put_le(at + 12, static_cast<std::uint16_t>(kind));
  put_le(at + 14, kRecordVersion);
}

// Returns the length of the whole record; nothing if `bytes` is shorter or the checksum is wrong.
std::optional<std::size_t> verified_length(std::span<const std::byte> bytes, std::uint64_t seed) {
  if (bytes.size() < kRecordHeader) return {};
  Header header = read_header(bytes);
  if (header.length > limits::kRecordMax || header.length > bytes.size() - kRecordHeader) return {};
  std::size_t length = kRecordHeader + header.length;
  if (xxh3_64(bytes.subspan(kChecksumBytes, length - kChecksumBytes), seed) != header.checksum) return {};
  return length;
}

}  // namespace

std::vector<std::byte> seal_record(RecordKind kind, std::span<const std::byte> payload, std::uint64_t seed) {
  std::vector<std::byte> record(kRecordHeader + payload.size());
  put_header(record.data(), kind, payload.size());
  if (!payload.empty()) std::memcpy(&record[kRecordHeader], payload.data(), payload.size());
  put_le(record.data(), xxh3_64(std::span(record).subspan(kChecksumBytes), seed));
  return record;
}

PiecewiseRecord::PiecewiseRecord(RecordKind kind, std::uint32_t payload_bytes) {
  put_header(header_.data(), kind, payload_bytes);
  hash_.add(std::span(header_).subspan(kChecksumBytes));
}

std::array<std::byte, kRecordHeader> PiecewiseRecord::header() const {
  auto header = header_;
  put_le(header.data(), hash_.value());
  return header;
}

Result<std::vector<std::byte>> open_record(RecordKind kind, std::span<const std::byte> record, std::string_view where,
                                           std::uint64_t seed) {
  auto length = verified_length(record, seed);
  if (!length || *length != record.size())
    return Error{Errc::corrupt, fmt::format("{}: bad checksum of a record of {} bytes; run `weft fsck --rebuild`",
                                            where, record.size())};
  Header header = read_header(record);
  if (header.version != kRecordVersion)
    return Error{Errc::unsupported, fmt::format("{}: another version of weft wrote this: expected record version {}, "
                                                "got {}",
                                                where, kRecordVersion, header.version)};
  if (header.kind != static_cast<std::uint16_t>(kind))
    return Error{Errc::corrupt, fmt::format("{}: expected a record of kind {}, got {}", where,
                                            static_cast<std::uint16_t>(kind), header.kind)};
  auto payload = record.subspan(kRecordHeader);
  return std::vector<std::byte>(payload.begin(), payload.end());
}

std::optional<std::size_t> record_length(std::span<const std::byte> bytes) {
  return verified_length(bytes, 0);
}

bool looks_like_event(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordHeader) return false;
  Header header = read_header(bytes);
  auto first = static_cast<std::uint16_t>(RecordKind::publish);
  auto end = static_cast<std::uint16_t>(RecordKind::counters);
  return header.kind >= first && header.kind < end && header.version != 0;
}

RecordKind record_kind(std::span<const std::byte> record) {
  return static_cast<RecordKind>(read_header(record).kind);
}

}  // namespace weft

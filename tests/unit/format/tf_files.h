// Builds the index of a TensorFlow checkpoint as a text of bytes, valid or not (header only).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builders.h"
#include "protobufs.h"

namespace weft::testing {

using TfEntries = std::vector<std::pair<std::string, std::string>>;  // keys and values

// Returns a block with its compression and its checksum behind it. Makes the checksum bit by bit, by the polynomial.
inline std::string tf_sealed(std::string block, unsigned compression = 0) {
  block += static_cast<char>(compression);
  std::uint32_t crc = UINT32_MAX;
  for (const char byte : block) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0x82f63b78U : crc >> 1U;
  }
  crc = ~crc;
  return block + le32(((crc >> 15U) | (crc << 17U)) + 0xa282ead8U);
}

// An entry of a block from its numbers, which may be wrong.
inline std::string tf_item(std::uint64_t shared, std::string_view rest_of_key, std::string_view value) {
  return pb_number(shared) + pb_number(rest_of_key.size()) + pb_number(value.size()) + std::string(rest_of_key) +
         std::string(value);
}

// Entries with one restart, so that each key shares what it can with the key before.
inline std::string tf_block(const TfEntries& entries) {
  std::string out, before;
  for (const auto& [key, value] : entries) {
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(before, key).in1 - before.begin());
    out += tf_item(shared, key.substr(shared), value);
    before = key;
  }
  return out + le32(0) + le32(1);
}

inline std::string tf_handle(std::uint64_t offset, std::uint64_t length) {
  return pb_number(offset) + pb_number(length);
}

// The last 48 bytes of a table.
inline std::string tf_footer(std::uint64_t index, std::uint64_t length) {
  std::string out = tf_handle(0, 0) + tf_handle(index, length);
  out.resize(40);
  return out + le64(0xdb4775248b80fb57);
}

// A table with these blocks of data, sealed one after the other.
inline std::string tf_table(const std::vector<std::string>& blocks) {
  std::string out;
  TfEntries places;
  for (const std::string& block : blocks) {
    places.emplace_back("k" + std::to_string(places.size()), tf_handle(out.size(), block.size()));
    out += tf_sealed(block);
  }
  out += tf_sealed(tf_block({}));
  const std::string index = tf_block(places);
  const std::size_t at = out.size();
  return out + tf_sealed(index) + tf_footer(at, index.size());
}

inline std::string tf_header(std::uint64_t shards = 1) {
  return pb_varint(1, shards) + pb_bytes(3, pb_varint(1, 1));
}

inline std::string tf_shape(const Shape& shape) {
  std::string out;
  for (const std::uint64_t size : shape) out += pb_bytes(2, size == 0 ? "" : pb_varint(1, size));
  return pb_bytes(2, out);
}

// The value of an entry. As protocol buffers do, it leaves out numbers that are 0.
inline std::string tf_value(unsigned type, const Shape& shape, std::uint64_t offset, std::uint64_t length,
                            std::uint64_t shard = 0) {
  const auto number = [](std::uint64_t field, std::uint64_t value) {
    return value == 0 ? std::string() : pb_varint(field, value);
  };
  return number(1, type) + tf_shape(shape) + number(3, shard) + number(4, offset) + number(5, length) + "\x35" +
         le32(0x12345678);
}

// A field of an entry: the slice with these extents (start, length).
inline std::string tf_slice(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& extents) {
  std::string out;
  for (const auto& [start, length] : extents)
    out += pb_bytes(1, (start == 0 ? "" : pb_varint(1, start)) + pb_varint(2, length));
  return pb_bytes(7, out);
}

// An index in one block. The header is put before the entries, which are sorted.
inline std::string tf_index(TfEntries entries, std::uint64_t shards = 1) {
  entries.emplace_back("", tf_header(shards));
  std::ranges::sort(entries);
  return tf_table({tf_block(entries)});
}

}  // namespace weft::testing

// The wire format of protocol buffers, without a schema: the fields of a message and their places in a file.
// Specification: https://protobuf.dev/programming-guides/encoding. The reader holds one small window of the file
// in memory, and skips the bytes of a field unless its caller asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/cursor.h"
#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// A number of variable length: 7 bits in each byte, the lowest first, and the highest bit set in all bytes but the
// last. Tables of LevelDB have such numbers too.
struct Varint {
  std::uint64_t value = 0;
  std::size_t bytes = 0;  // 1 to 10
};
// Returns the number at the start of the bytes. std::nullopt: it has more than 10 bytes, or does not end. The reader
// drops bits beyond 64, as Google's readers do.
std::optional<Varint> first_varint(std::span<const std::byte> bytes);

struct ProtobufField {
  enum class Kind : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };  // as on the wire

  std::uint32_t number = 0;  // 1 to 2^29 - 1
  Kind kind = Kind::varint;
  std::uint64_t value = 0;  // of a varint
  Range bytes;              // place of the value in the file, within the message of the field

  bool is_bytes(std::uint32_t of) const { return number == of && kind == Kind::bytes; }
  bool is_varint(std::uint32_t of) const { return number == of && kind == Kind::varint; }
};

// One thread. Errc::invalid: the bytes are no message. Errc::unsupported: groups, messages that are nested too deeply,
// too many fields. The source and a visit return errors of their own.
class ProtobufReader {
 public:
  using Visit = std::function<Status(const ProtobufField&)>;

  // `file` outlives the reader.
  explicit ProtobufReader(ByteSource& file) : whole_{0, file.size()}, cursor_(file, file.size()) {}

  Range whole() const { return whole_; }
  // Visits the fields of a message in their order, until one visit fails. A visit may read messages in the message, to
  // the depth limits::kProtobufDepthMax, which is that of Google's readers. All messages together have at most
  // limits::kProtobufFieldsMax fields, each counted once for each visit. `message`: whole(), or the bytes of a field.
  Status each_field(Range message, const Visit& visit);
  // Returns the text of a field of bytes, or the first `bytes_max` bytes of a longer one. It may not be UTF-8.
  Result<std::string> text(const ProtobufField& field, std::size_t bytes_max);
  // Appends the numbers of a field: one, or any number of packed ones. Stops when there are `count_max`.
  Status add_numbers(const ProtobufField& field, std::size_t count_max, std::vector<std::uint64_t>& numbers);

 private:
  Status visit_all(std::uint64_t at, std::uint64_t end, const Visit& visit);
  Result<ProtobufField> next(std::uint64_t end);  // the field at the cursor
  Result<std::uint64_t> varint(std::uint64_t end);

  const Range whole_;
  HeaderCursor cursor_;
  std::size_t depth_ = 0;
  std::uint64_t visited_ = 0;
};

}  // namespace weft

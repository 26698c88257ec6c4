#include "format/tf/table.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "format/cursor.h"
#include "format/protobuf.h"

namespace weft {
namespace {

constexpr std::uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr std::size_t kTableFooter = 48;  // bytes, with the magic number
constexpr std::size_t kTableTrailer = 5;  // bytes behind a block: its compression and its checksum
constexpr std::size_t kTableRestart = 4;  // bytes of a restart, and of their count

template <class... Args>
Error no_table(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::invalid, "table: " + fmt::format(format, std::forward<Args>(args)...)};
}

// CRC-32C (Castagnoli), of RFC 3720.
constexpr std::array<std::uint32_t, 256> crc32c_steps() {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected
  std::array<std::uint32_t, 256> steps{};
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1U) ^ ((rest & 1U) != 0 ? kPolynomial : 0);
    steps[i] = rest;
  }
  return steps;
}

// LevelDB masks its checksums, because it also makes checksums of data with checksums in it.
std::uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kSteps = crc32c_steps();
  constexpr std::uint32_t kMask = 0xa282ead8;
  std::uint32_t crc = UINT32_MAX;
  for (const char byte : bytes) crc = kSteps[(crc ^ static_cast<unsigned char>(byte)) & 0xffU] ^ (crc >> 8U);
  return std::rotr(~crc, 15) + kMask;
}

std::span<const std::byte> table_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Takes a number from the front of `bytes`.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  const auto number = first_varint(table_bytes(bytes));
  if (!number) return std::nullopt;
  bytes.remove_prefix(number->bytes);
  return number->value;
}

// Takes a place from the front of `bytes`.
std::optional<Range> take_place(std::string_view& bytes) {
  const auto offset = take_varint(bytes);
  const auto length = offset ? take_varint(bytes) : std::nullopt;
  if (!length) return std::nullopt;
  return Range{*offset, *length};
}

struct BlockEntry {
  std::uint64_t shared = 0;   // bytes of the key before that begin this key; that key has so many
  std::string_view key_rest;  // its other bytes
  std::string_view value;
};

// Visits the entries of a block.
Status each_block_entry(std::string_view block, const std::function<Status(const BlockEntry&)>& visit) {
  if (block.size() < kTableRestart)
    return no_table("expected a count of restarts in a block of {} bytes", block.size());
  const std::uint64_t restarts = load_le<std::uint32_t>(table_bytes(block.substr(block.size() - kTableRestart)).data());
  const std::uint64_t end = (restarts + 1) * kTableRestart;
  if (end > block.size()) return no_table("expected a block of at least {} bytes, got {}", end, block.size());
  std::string_view rest = block.substr(0, block.size() - end);
  std::uint64_t key_bytes = 0;
  while (!rest.empty()) {
    std::array<std::uint64_t, 3> numbers{};
    for (std::uint64_t& number : numbers) {
      const auto taken = take_varint(rest);
      if (!taken || *taken > UINT32_MAX) return no_table("expected three numbers of 32 bits before a key");
      number = *taken;
    }
    const auto [shared, other, value] = numbers;
    if (shared > key_bytes) return no_table("a key shares {} bytes with a key of {} bytes", shared, key_bytes);
    if (other + value > rest.size())
      return no_table("expected a key and a value of {} bytes, got {} before the end of the block", other + value,
                      rest.size());
    key_bytes = shared + other;
    WEFT_CHECK(visit({shared, rest.substr(0, other), rest.substr(other, value)}));
    rest.remove_prefix(other + value);
  }
  return {};
}

// Reads one table once.
class Table {
 public:
  Table(ByteSource& file, bool verify, const VisitTableEntry& visit) : file_(file), verify_(verify), visit_(visit) {}

  Status read();

 private:
  Result<Range> index_place();
  // Returns the bytes of a block that ends, with its checksum, before `end`.
  Result<std::string> block_at(Range place, std::uint64_t end);
  Status read_data(Range place, std::uint64_t end);
  Status take_key(const BlockEntry& entry);

  ByteSource& file_;
  const bool verify_;
  const VisitTableEntry& visit_;
  std::optional<std::string> key_;  // the last one
  std::uint64_t keys_bytes_ = 0;
};

Status Table::read() {
  WEFT_TRY(const Range index, index_place());
  WEFT_TRY(const std::string places, block_at(index, file_.size() - kTableFooter));
  std::uint64_t read_to = 0;
  return each_block_entry(places, [&](const BlockEntry& entry) -> Status {
    std::string_view value = entry.value;
    const auto place = take_place(value);
    if (!place) return no_table("expected the place of a block in the index");
    if (place->offset < read_to) return no_table("the block at {} overlaps the one before", place->offset);
    WEFT_CHECK(read_data(*place, index.offset));
    read_to = place->offset + place->length + kTableTrailer;
    return {};
  });
}

Result<Range> Table::index_place() {
  if (file_.size() < kTableFooter) return no_table("expected at least {} bytes, got {}", kTableFooter, file_.size());
  std::string footer(kTableFooter, '\0');
  WEFT_CHECK(file_.read(file_.size() - kTableFooter, std::as_writable_bytes(std::span(footer))));
  constexpr std::size_t kMagicAt = kTableFooter - sizeof(kTableMagic);
  if (load_le<std::uint64_t>(table_bytes(footer).subspan(kMagicAt).data()) != kTableMagic)
    return no_table("expected a magic number at the end of the file, got other bytes");
  std::string_view places = std::string_view(footer).substr(0, kMagicAt);
  const auto unused = take_place(places);
  const auto index = unused ? take_place(places) : std::nullopt;
  if (!index) return no_table("expected the places of two blocks in the footer");
  return *index;
}

Result<std::string> Table::block_at(Range place, std::uint64_t end) {
  if (place.offset > end || end - place.offset < kTableTrailer || place.length > end - place.offset - kTableTrailer)
    return no_table("the block of {} bytes at {} ends after byte {}", place.length, place.offset, end);
  if (place.length > limits::kTableBlockMax)
    return Error{Errc::unsupported, fmt::format("table: expected blocks of at most {} bytes, got {}",
                                                limits::kTableBlockMax, place.length)};
  std::string block(static_cast<std::size_t>(place.length) + kTableTrailer, '\0');
  WEFT_CHECK(file_.read(place.offset, std::as_writable_bytes(std::span(block))));
  if (block[place.length] != '\0')
    return Error{Errc::unsupported, fmt::format("table: the block at {} is compressed", place.offset)};
  const auto checksum = load_le<std::uint32_t>(table_bytes(block).subspan(place.length + 1).data());
  block.resize(place.length + 1);
  if (verify_ && masked_crc32c(block) != checksum)
    return no_table("the block at {} does not have its checksum", place.offset);
  block.resize(place.length);
  return block;
}

Status Table::read_data(Range place, std::uint64_t end) {
  WEFT_TRY(const std::string block, block_at(place, end));
  return each_block_entry(block, [&](const BlockEntry& entry) -> Status {
    WEFT_CHECK(take_key(entry));
    const auto at = static_cast<std::uint64_t>(entry.value.data() - block.data());
    return visit_(*key_, {place.offset + at, entry.value.size()});
  });
}

// The bytes that both keys share are not compared, so one byte of the file costs one step.
Status Table::take_key(const BlockEntry& entry) {
  if (!key_)
    key_.emplace();
  else if (entry.key_rest <= std::string_view(*key_).substr(entry.shared))
    return no_table("a key does not come after the key before it");
  key_->resize(entry.shared);
  key_->append(entry.key_rest);
  keys_bytes_ += key_->size();
  if (keys_bytes_ > limits::kTableKeysMax)
    return Error{Errc::unsupported,
                 fmt::format("table: expected keys of at most {} bytes together, got more", limits::kTableKeysMax)};
  return {};
}

}  // namespace

Status each_table_entry(ByteSource& file, bool verify, const VisitTableEntry& visit) {
  return Table(file, verify, visit).read();
}

}  // namespace weft

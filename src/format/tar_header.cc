#include "format/tar_header.h"

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

struct Field {
  std::size_t offset;
  std::size_t length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kLink{157, 100}, kMagic{257, 6}, kPrefix{345, 155};
constexpr std::size_t kTypeAt = 156;

std::string_view raw(std::string_view block, Field field) {
  return block.substr(field.offset, field.length);
}

// Returns the field up to its first NUL.
std::string_view text(std::string_view block, Field field) {
  const std::string_view all = raw(block, field);
  return all.substr(0, std::min(all.find('\0'), all.size()));
}

// Parses octal digits between blanks or, if the highest bit is set, a big-endian number, as GNU writes large values.
std::optional<std::uint64_t> number(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  std::uint64_t value = 0;
  if (first == 0x80U) {
    for (const char c : bytes.substr(1))
      if (__builtin_mul_overflow(value, 256U, &value))
        return std::nullopt;
      else
        value += static_cast<unsigned char>(c);
    return value;
  }
  bytes = bytes.substr(0, std::min(bytes.find('\0'), bytes.size()));
  bytes = bytes.substr(std::min(bytes.find_first_not_of(' '), bytes.size()));
  bytes = bytes.substr(0, std::min(bytes.find(' '), bytes.size()));
  for (const char c : bytes) {
    if (c < '0' || c > '7' || value >> 61U != 0) return std::nullopt;
    value = value * 8 + static_cast<unsigned>(c - '0');
  }
  return value;
}

// True if the checksum is the sum of all bytes, with its own bytes as blanks. Old programs added signed bytes.
bool checksum_holds(std::string_view block) {
  const std::optional<std::uint64_t> expected = number(raw(block, kChecksum));
  std::uint64_t plain = 0;
  std::int64_t with_sign = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    const char c = own ? ' ' : block[i];
    plain += static_cast<unsigned char>(c);
    with_sign += static_cast<signed char>(c);
  }
  return expected && (*expected == plain || static_cast<std::int64_t>(*expected) == with_sign);
}

Error bad_pax() {
  return {Errc::invalid, "expected pax records, got other text"};
}

void take_pax(std::string_view key, std::string_view value, PaxFacts& facts, bool& good) {
  if (key == "path") facts.name = value;
  if (key == "linkpath") facts.link = value;
  if (key.starts_with("GNU.sparse.")) facts.sparse = true;
  if (key != "size") return;
  facts.size = parse_u64(value);
  good = facts.size.has_value();
}

}  // namespace

Result<std::optional<TarHeader>> parse_tar_header(std::span<const std::byte, kTarBlock> bytes) {
  const std::string_view block(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (block.find_first_not_of('\0') == block.npos) return std::optional<TarHeader>();
  if (!checksum_holds(block)) return Error{Errc::invalid, "expected a header, got a block whose checksum is wrong"};
  TarHeader header;
  const std::optional<std::uint64_t> size = number(raw(block, kSize));
  if (!size) return Error{Errc::invalid, "expected a size in a header, got no number"};
  header.size = *size;
  header.type = block[kTypeAt] == '\0' ? '0' : block[kTypeAt];
  header.name = text(block, kName);
  header.link = text(block, kLink);
  const std::string_view prefix = text(block, kPrefix);
  if (raw(block, kMagic) == std::string_view("ustar\0", 6) && !prefix.empty())
    header.name = std::string(prefix).append("/").append(header.name);
  // v7 marks a directory by a slash at the end of its name.
  if (header.type == '0' && header.name.ends_with('/')) header.type = '5';
  return std::optional(std::move(header));
}

Status parse_pax(std::string_view text, PaxFacts& facts) {
  while (!text.empty() && text.front() != '\0') {
    const std::size_t blank = text.find(' ');
    if (blank == text.npos || blank > 20) return bad_pax();
    const std::optional<std::uint64_t> length = parse_u64(text.substr(0, blank));
    if (!length || *length <= blank + 1 || *length > text.size()) return bad_pax();
    std::string_view record = text.substr(blank + 1, *length - blank - 1);
    text.remove_prefix(*length);
    const std::size_t equals = record.find('=');
    if (!record.ends_with('\n') || equals == record.npos) return bad_pax();
    record.remove_suffix(1);
    bool good = true;
    take_pax(record.substr(0, equals), record.substr(equals + 1), facts, good);
    if (!good) return bad_pax();
  }
  return {};
}

MemberPath member_path(std::string_view name) {
  if (name.starts_with('/')) return {{}, "an absolute name"};
  if (!valid_utf8(name)) return {{}, "a name that is not UTF-8"};
  for (std::string_view rest = name; !rest.empty();) {
    const CodePoint next = first_code_point(rest);
    if (is_control(next.value)) return {{}, "a name with control characters"};
    rest.remove_prefix(next.length);
  }
  std::string path;
  std::size_t components = 0;
  for (const std::string_view one : split(name, '/')) {
    if (one.empty() || one == ".") continue;
    if (one == "..") return {{}, "a name that leaves the tar"};
    if (one.size() > limits::kNameMax || ++components > limits::kPathComponentsMax) return {{}, "an over-long name"};
    if (!path.empty()) path += '/';
    path += one;
  }
  if (path.empty()) return {{}, "an empty name"};
  if (path.size() > limits::kPathMax) return {{}, "an over-long name"};
  return {std::move(path), {}};
}

}  // namespace weft

// One 512-byte header of a tar: v7, ustar, GNU and pax.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kTarBlock = 512;

struct TarHeader {
  std::string name;  // includes the ustar prefix; any bytes but NUL
  std::string link;
  std::uint64_t size = 0;
  char type = '0';
};

// Parses a header. Nothing: a block of zeros, which ends a tar. Errc::invalid: the checksum or a number is wrong.
Result<std::optional<TarHeader>> parse_tar_header(std::span<const std::byte, kTarBlock> block);

// Facts about the next member, from pax records.
struct PaxFacts {
  std::optional<std::string> name;
  std::optional<std::string> link;
  std::optional<std::uint64_t> size;
  bool sparse = false;
};
// Parses "LENGTH KEY=VALUE\n" records into `facts`. Errc::invalid: any other text.
Status parse_pax(std::string_view text, PaxFacts& facts);

// The path of a member below the directory where a tar is unpacked: "./a//b/" is "a/b". A name that leaves that
// directory or cannot be a path of weft has a `why` instead: absolute, "..", empty, over-long, control characters, not
// UTF-8.
struct MemberPath {
  std::string path;
  std::string_view why;  // "": `path` is valid
};
MemberPath member_path(std::string_view name);

}  // namespace weft

// Reads past the page cache, for bytes that are passed on: kept there they would take room from what is read again, and
// cost a copy.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/result.h"
#include "weft/source.h"

namespace weft {

// Shorter reads are better off with the kernel's readahead.
inline constexpr std::uint64_t kDirectReadMin = 1U << 20U;

// `length` bytes at `offset` of a file that is open with O_DIRECT, fewer only at its end. Errc::invalid or
// Errc::unsupported where the file system has rules of its own.
Result<SourceBytes> read_direct(int fd, std::uint64_t offset, std::size_t length, std::string_view where);

}  // namespace weft

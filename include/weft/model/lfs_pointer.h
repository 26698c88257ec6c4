// A Git LFS pointer: a file of a few lines that stands for a file that was not downloaded (format/lfs_pointer.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kLfsPointerMax = 1024;  // bytes, as git-lfs: a longer file is no pointer
inline constexpr std::size_t kLfsPointerHead = 40;     // first bytes of a file that show that it is a pointer

// Returns Errc::invalid if the file is a pointer, unless its name has no suffix or is that of a text for people: such a
// file may be about a pointer. `file_name` is a base name, `size` the bytes of the file. `head` has its first
// kLfsPointerHead bytes or more, or all of a shorter file; nobody needs to read it if `size` is above kLfsPointerMax.
Status refuse_lfs_pointer(std::string_view file_name, std::uint64_t size, std::span<const std::byte> head);

}  // namespace weft

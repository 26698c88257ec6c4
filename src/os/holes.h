// Sparse packs: whole blocks of zeros take no disk. A hole reads as the zeros that it stands for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kHoleBlock = 4096;
inline constexpr std::uint64_t kHoleMin = 64U << 10U;  // a shorter hole would cost an extent and save little

bool is_zero(std::span<const std::byte> bytes);

// The file has a hole in all of the range. False where the file system does not tell: it reports all of a file as data.
bool has_no_data(int fd, std::uint64_t offset, std::uint64_t length);

// The runs of `bytes` that are data, where `bytes` go to `offset` of a file; the runs' offsets are of `bytes`. What is
// left out is whole blocks of zeros, kHoleMin bytes or more in a row.
std::vector<Range> data_runs(std::uint64_t offset, std::span<const std::byte> bytes);

// The runs that have to be written so that the file reads as `bytes` there: zeros are left out only where the file has
// no data.
std::vector<Range> runs_to_write(int fd, std::uint64_t offset, std::span<const std::byte> bytes);

// Makes the file at least `size` bytes long.
Status extend_file(int fd, std::uint64_t size, std::string_view where);

}  // namespace weft

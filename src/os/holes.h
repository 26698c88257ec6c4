// Sparse packs: whole blocks of zeros take no disk space. A hole reads as zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kHoleBlock = 4096;
inline constexpr std::uint64_t kHoleMin = 64U << 10U;  // a shorter hole would cost an extent and save little

bool is_zero(std::span<const std::byte> bytes);

// True if the whole range is a hole. False if the file system reports no holes: it calls the whole file data.
bool has_no_data(int fd, std::uint64_t offset, std::uint64_t length);

// Returns the first offset from `from` on that is in no hole; nothing if no data follows.
Result<std::optional<std::uint64_t>> next_data(int fd, std::uint64_t from, std::string_view where);

// Returns the runs of `bytes` that hold data, as offsets in `bytes`, which go to `offset` of a file. Whole blocks of
// zeros are left out, in stretches of at least kHoleMin bytes.
std::vector<Range> data_runs(std::uint64_t offset, std::span<const std::byte> bytes);

// Returns the runs to write so that the file reads as `bytes` at `offset`. Zeros are left out only over a hole.
std::vector<Range> runs_to_write(int fd, std::uint64_t offset, std::span<const std::byte> bytes);

// Makes the file at least `size` bytes long.
Status extend_file(int fd, std::uint64_t size, std::string_view where);

}  // namespace weft

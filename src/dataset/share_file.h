// Makes the .npy file of a share of a container's rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "dataset/dataset_numbers.h"
#include "dataset/row_shares.h"

namespace weft {

// The content of a generated file. Valid without the table; any thread.
struct MadeFile {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;  // within the size
  std::size_t memory_bytes = 0;                                              // memory that this takes, about
};

// `name` has a rank.
MadeFile make_share_file(const RowShares& shares, const ShareName& name);

}  // namespace weft

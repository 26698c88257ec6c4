// HDF5 files: the datasets that are tensors, and the places of their bytes. HDF5 File Format Specification 3.0 and 4.0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

inline bool is_hdf5(std::span<const std::byte> head) {
  return head.size() >= kHdf5Signature.size() &&
         std::ranges::equal(head.first(kHdf5Signature.size()), std::as_bytes(std::span(kHdf5Signature)));
}

// Returns the tensors of an HDF5 file. A tensor is named by its path, with dots for slashes. Follows no link out of its
// group's file and opens no other file. Errc::unsupported: the file is broken, or has a form that weft does not know.
// `verify`: compares checksums; a fuzzer turns it off.
Result<Layout> read_hdf5(ByteSource& file, bool verify = true);

}  // namespace weft

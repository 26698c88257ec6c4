// The entry of a tensor in the index of a TensorFlow checkpoint, a BundleEntryProto. Source: tensor_bundle.proto,
// tensor_slice.proto and tensor_shape.proto of tensorflow/core.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "format/protobuf.h"
#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/result.h"

namespace weft {

// As the file has it, unchecked. The bytes of a partitioned tensor are those of other entries, one for each slice.
struct BundleEntry {
  std::uint64_t type = 0;    // of the enum DataType
  Shape shape;               // at most limits::kDimensionsMax + 1 dimensions
  std::uint64_t shard = 0;   // number of the file with data
  std::uint64_t offset = 0;  // bytes from the start of that file
  std::uint64_t length = 0;  // bytes
  std::uint64_t slices = 0;  // 0: the tensor is not partitioned
};

Result<BundleEntry> read_bundle_entry(ProtobufReader& file, Range message);

// A part of a tensor, unchecked. Negative numbers are in two's complement.
struct BundleSlice {
  static constexpr std::uint64_t kWhole = UINT64_MAX;  // a length of -1: all elements of the dimension

  Shape begin;   // at most limits::kDimensionsMax + 1 dimensions
  Shape length;  // as many
};

// Visits the slices of a partitioned tensor, whose entry is `message`.
Status each_bundle_slice(ProtobufReader& file, Range message, const std::function<Status(const BundleSlice&)>& visit);

// Returns the key that the entry of a slice has in the index (EncodeTensorNameSlice in
// tensorflow/core/util/saved_tensor_slice_util.cc, with the numbers and texts of lib/strings/ordered_code.h).
std::string slice_key(std::string_view tensor, const BundleSlice& slice);

// True if a key in the index is that of a slice.
inline bool is_slice_key(std::string_view key) {
  return key.starts_with('\0');
}

struct BundleType {
  std::string_view name;  // as in the enum DataType, without DT_
  std::optional<DType> dtype;
};
// std::nullopt: the enum does not have the number.
std::optional<BundleType> bundle_type(std::uint64_t number);

}  // namespace weft

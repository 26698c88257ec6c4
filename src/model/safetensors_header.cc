#include "model/safetensors_header.h"

#include <algorithm>

#include "weft/tree.h"

namespace weft {
namespace {

// Returns the alignment of an element in bytes; 1 for packed types (two in a byte and the like).
std::uint32_t alignment(DType dtype) {
  const DTypeInfo& info = *dtype_info(dtype);
  return info.block_elements == 1 ? info.block_bytes : 1;
}

}  // namespace

void write_safetensors_entry(JsonWriter& json, const Tensor& tensor, Range range) {
  json.key(tensor.name).begin_object().member("dtype", dtype_info(tensor.dtype)->name).key("shape").begin_array();
  for (std::uint64_t dimension : tensor.shape) json.value(dimension);
  json.end_array().key("data_offsets").begin_array().value(range.offset).value(range.offset + range.length).end_array();
  json.end_object();
}

std::string framed_safetensors_header(std::string text) {
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string header;
  for (unsigned shift = 0; shift < 64; shift += 8) header += static_cast<char>(text.size() >> shift);
  return header + text;
}

// Part of the numbering of nodes (weft/tree.h): it decides which layers have a container.
bool safetensors_can_hold(DType dtype) {
  return dtype < DType::q4_0 && dtype != DType::c128 && dtype_info(dtype) != nullptr;
}

bool safetensors_can_hold(const Tensor& tensor) {
  return tensor.descr.empty() && !tensor.scattered() && safetensors_can_hold(tensor.dtype);
}

std::vector<TensorRef> container_tensors(const VersionTree& tree, std::uint32_t layer) {
  const Manifest& manifest = tree.manifest();
  auto tensor = [&](const TensorRef& ref) -> const Tensor& { return manifest.files[ref.file].tensors[ref.tensor]; };
  std::vector<TensorRef> held;
  for (const TensorRef& ref : tree.layers()[layer].subtree)
    if (safetensors_can_hold(tensor(ref))) held.push_back(ref);
  std::ranges::stable_sort(held, std::greater(), [&](const TensorRef& ref) { return alignment(tensor(ref).dtype); });
  return held;
}

std::string safetensors_header(const Manifest& manifest, std::span<const TensorRef> tensors) {
  JsonWriter json;
  json.begin_object();
  std::uint64_t offset = 0;
  for (const TensorRef& ref : tensors) {
    const File& file = manifest.files[ref.file];
    Range range{offset, stored_bytes(file, file.tensors[ref.tensor])};
    write_safetensors_entry(json, file.tensors[ref.tensor], range);
    offset += range.length;
  }
  json.end_object();
  return framed_safetensors_header(json.take());
}

}  // namespace weft

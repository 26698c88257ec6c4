#include "model/safetensors_file.h"

#include <algorithm>

#include "base/json.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

// The order of Dtype in the reference implementation (safetensors/src/tensor.rs).
constexpr DType kTypes[] = {DType::boolean,     DType::f4,      DType::f6_e2m3, DType::f6_e3m2, DType::u8,
                            DType::i8,          DType::f8_e5m2, DType::f8_e4m3, DType::f8_e8m0, DType::f8_e4m3fnuz,
                            DType::f8_e5m2fnuz, DType::i16,     DType::u16,     DType::f16,     DType::bf16,
                            DType::i32,         DType::u32,     DType::f32,     DType::c64,     DType::f64,
                            DType::i64,         DType::u64};

std::size_t rank(DType type) {
  return static_cast<std::size_t>(std::ranges::find(kTypes, type) - std::begin(kTypes));
}

std::string with_metadata(std::string header, const std::vector<std::pair<std::string, std::string>>& metadata) {
  if (metadata.empty()) return header;
  JsonWriter json;
  json.begin_object().key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) json.member(key, std::string_view(value));
  std::string out = json.end_object().end_object().take();
  const bool more = header != "{}";
  out.back() = more ? ',' : '}';
  return more ? out + header.substr(1) : out;
}

// Writes a member of the header, "name":{"dtype":…,"shape":…,"data_offsets":[…]}. `range` counts from the header's end.
void write_safetensors_entry(JsonWriter& json, std::string_view name, const Tensor& tensor, Range range) {
  json.key(name).begin_object().member("dtype", dtype_info(tensor.dtype)->name).key("shape").begin_array();
  for (std::uint64_t dimension : tensor.shape) json.value(dimension);
  json.end_array().key("data_offsets").begin_array().value(range.offset).value(range.offset + range.length).end_array();
  json.end_object();
}

// Returns the length in 8 bytes, the text, and blanks up to a multiple of 8.
std::string framed_safetensors_header(std::string text) {
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string header;
  for (unsigned shift = 0; shift < 64; shift += 8) header += static_cast<char>(text.size() >> shift);
  return header + text;
}

}  // namespace

// Part of the numbering of nodes (weft/model/tree.h): it decides which layers have a container.
bool safetensors_can_hold(DType dtype) {
  return dtype < DType::q4_0 && dtype != DType::c128 && dtype_info(dtype) != nullptr;
}

bool safetensors_can_hold(const Tensor& tensor) {
  return tensor.descr.empty() && !tensor.scattered() && safetensors_can_hold(tensor.dtype);
}

std::uint32_t safetensors_alignment(DType dtype) {
  const DTypeInfo& info = *dtype_info(dtype);
  return info.block_elements == 1 ? info.block_bytes : 1;
}

std::vector<TensorRef> container_tensors(const VersionTree& tree, std::uint32_t layer) {
  const Manifest& manifest = tree.manifest();
  auto tensor = [&](const TensorRef& ref) -> const Tensor& { return manifest.files[ref.file].tensors[ref.tensor]; };
  std::vector<TensorRef> held;
  for (const TensorRef& ref : tree.layers()[layer].subtree)
    if (safetensors_can_hold(tensor(ref))) held.push_back(ref);
  std::ranges::stable_sort(held, std::greater(),
                           [&](const TensorRef& ref) { return safetensors_alignment(tensor(ref).dtype); });
  return held;
}

std::string safetensors_header(const Manifest& manifest, std::span<const TensorRef> tensors) {
  return safetensors_header(manifest, tensors, 0, {});
}

std::string safetensors_header(const Manifest& manifest, std::span<const TensorRef> tensors, std::size_t prefix_bytes,
                               const std::vector<std::pair<std::string, std::string>>& metadata) {
  JsonWriter json;
  json.begin_object();
  std::uint64_t offset = 0;
  for (const TensorRef& ref : tensors) {
    const File& file = manifest.files[ref.file];
    const Tensor& tensor = file.tensors[ref.tensor];
    Range range{offset, stored_bytes(file, tensor)};
    write_safetensors_entry(json, std::string_view(tensor.name).substr(prefix_bytes), tensor, range);
    offset += range.length;
  }
  return framed_safetensors_header(with_metadata(json.end_object().take(), metadata));
}

SafetensorsFile lay_out_safetensors(std::string path, std::vector<PlacedTensor> tensors,
                                    std::vector<std::pair<std::string, std::string>> metadata) {
  std::ranges::sort(tensors, [](const PlacedTensor& a, const PlacedTensor& b) {
    const std::size_t x = rank(a.tensor.dtype), y = rank(b.tensor.dtype);
    return x != y ? x > y : a.tensor.name < b.tensor.name;
  });
  SafetensorsFile out;
  JsonWriter json;
  json.begin_object();
  std::uint64_t offset = 0;
  for (const PlacedTensor& one : tensors) {
    write_safetensors_entry(json, one.tensor.name, one.tensor, {offset, one.extent.id.length});
    offset += one.extent.id.length;
  }
  out.header = framed_safetensors_header(with_metadata(json.end_object().take(), metadata));
  File& file = out.file;
  file.path = std::move(path);
  file.format = "safetensors";
  file.metadata = std::move(metadata);
  file.size = out.header.size() + offset;
  file.extents.push_back({0, {out.header.size(), {}}});
  std::uint64_t end = out.header.size();
  for (PlacedTensor& one : tensors) {
    one.tensor.extent = kNoExtent;
    if (one.extent.id.length > 0) {
      one.tensor.extent = static_cast<std::uint32_t>(file.extents.size());
      file.extents.push_back({end, one.extent.id, one.extent.head});
      end += one.extent.id.length;
    }
    file.tensors.push_back(std::move(one.tensor));
  }
  return out;
}

}  // namespace weft

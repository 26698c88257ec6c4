#include "model/safetensors_file.h"

#include <algorithm>

#include "model/safetensors_header.h"

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

}  // namespace

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
    write_safetensors_entry(json, one.tensor, {offset, one.extent.id.length});
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

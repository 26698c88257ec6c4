// Builds protobuf messages, and models of ONNX, as texts of bytes (header only).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

inline std::string pb_number(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80U; value >>= 7U) out += static_cast<char>(value | 0x80U);
  return out + static_cast<char>(value);
}
inline std::string pb_key(std::uint64_t field, unsigned wire_type) {
  return pb_number(field << 3U | wire_type);
}
inline std::string pb_varint(std::uint64_t field, std::uint64_t value) {
  return pb_key(field, 0) + pb_number(value);
}
inline std::string pb_bytes(std::uint64_t field, std::string_view bytes) {
  return pb_key(field, 2) + pb_number(bytes.size()) + std::string(bytes);
}

// The fields of a TensorProto: dims, data_type, name.
inline std::string onnx_tensor(std::string_view name, unsigned type, const std::vector<std::uint64_t>& shape) {
  std::string out;
  for (const std::uint64_t dimension : shape) out += pb_varint(1, dimension);
  return out + pb_varint(2, type) + (name.empty() ? "" : pb_bytes(8, name));
}
// The same with raw_data.
inline std::string onnx_raw(std::string_view name, unsigned type, const std::vector<std::uint64_t>& shape,
                            std::string_view data) {
  return onnx_tensor(name, type, shape) + pb_bytes(9, data);
}
// external_data and data_location of a TensorProto. An entry that is empty is left out.
inline std::string onnx_external(std::string_view location, std::string_view offset, std::string_view length) {
  const auto entry = [](std::string_view key, std::string_view value) {
    return value.empty() ? std::string() : pb_bytes(13, pb_bytes(1, key) + pb_bytes(2, value));
  };
  return entry("location", location) + entry("offset", offset) + entry("length", length) + pb_varint(14, 1);
}
inline std::string onnx_attribute(std::string_view name, std::uint64_t field, std::string_view value) {
  return pb_bytes(5, pb_bytes(1, name) + pb_bytes(field, value));
}
// A node as a field of a graph.
inline std::string onnx_node(std::string_view name, std::string_view attributes) {
  return pb_bytes(1, pb_bytes(3, name) + std::string(attributes));
}
// A model as PyTorch writes it, with the fields of a graph, and with further fields of the model.
inline std::string onnx_model(std::string_view graph, std::string_view more = "") {
  return pb_varint(1, 8) + pb_bytes(2, "pytorch") + pb_bytes(3, "2.9") + pb_bytes(7, graph) + std::string(more);
}
// A model with one initializer.
inline std::string onnx_with(std::string_view tensor) {
  return onnx_model(pb_bytes(5, tensor));
}

}  // namespace weft::testing

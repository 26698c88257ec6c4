// A small model in the format ONNX, made by hand.
#pragma once

#include <string>

namespace weft::testing {

// A field of a protobuf message: bytes, at most 127 of them.
inline std::string protobuf_field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// Returns a model with the tensor w of four float32, whose 16 bytes are `values`. In safetensors/ it is a container.
inline std::string onnx_file(const std::string& values) {
  const std::string tensor = "\x08\x04\x10\x01" + protobuf_field(8, "w") + protobuf_field(9, values);
  const std::string graph = protobuf_field(2, "g") + protobuf_field(5, tensor);
  return "\x08\x08" + protobuf_field(7, graph) + protobuf_field(8, "\x10\x0d");
}

}  // namespace weft::testing

// Builds files of TFLite, well-formed or malformed, as strings of bytes (header only).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builders.h"

namespace weft::testing {

// Appends the tables of a FlatBuffer, and points fields at what was appended before or after them.
class FlatBuilder {
 public:
  std::string bytes = le32(0) + "TFL3";

  // Appends a table whose fields have these bytes each; 0: it lacks the field. Returns its place.
  std::size_t table(const std::vector<unsigned>& widths) {
    std::string list, fields;
    for (const unsigned width : widths) {
      list += le16(width == 0 ? 0 : 4 + fields.size());
      fields += std::string(width, '\0');
    }
    const std::size_t at = bytes.size();
    bytes += le16(4 + list.size()) + le16(4 + fields.size()) + list;
    const std::size_t place = bytes.size();
    bytes += le32(place - at) + fields;
    return place;
  }
  // Returns the place of a field of a table that has it.
  std::size_t field(std::size_t table, unsigned number) const {
    const std::size_t list = table - get(table, 4);
    return table + get(list + 4 + 2 * std::size_t{number}, 2);
  }
  void put(std::size_t at, std::uint64_t value, unsigned width) {
    bytes.replace(at, width, little_endian(value, width));
  }
  void point(std::size_t from, std::size_t to) { put(from, to - from, 4); }
  // Appends a list, and points a field at it.
  void list(std::size_t from, std::uint64_t count, std::string_view items) {
    point(from, bytes.size());
    bytes += le32(count) + std::string(items);
  }
  // Appends a list of pointers, and points a field at it. Returns the place of the first. A pointer leads forward, so
  // the tables follow.
  std::size_t pointers(std::size_t from, std::uint64_t count) {
    list(from, count, std::string(4 * count, '\0'));
    return bytes.size() - 4 * count;
  }

 private:
  std::size_t get(std::size_t at, unsigned width) const {
    std::size_t value = 0;
    for (unsigned i = width; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
    return value;
  }
};

struct TfliteTensor {
  std::string name;
  unsigned type = 0;  // of TensorType
  std::vector<std::uint32_t> shape;
  std::uint32_t buffer = 0;
  bool sparse = false;
};

// Places of a file's parts, for tests that damage them.
struct TflitePlaces {
  std::size_t model = 0, buffers = 0, tensors = 0;  // a table, and lists of pointers
};

// Appends a tensor. Returns its place.
inline std::size_t tflite_tensor(FlatBuilder& flat, const TfliteTensor& tensor) {
  const std::size_t at = flat.table({4, 1, 4, 4, 0, 0, tensor.sparse ? 4U : 0U});
  std::string shape;
  for (const std::uint32_t dimension : tensor.shape) shape += le32(dimension);
  flat.list(flat.field(at, 0), tensor.shape.size(), shape);
  flat.put(flat.field(at, 1), tensor.type, 1);
  flat.put(flat.field(at, 2), tensor.buffer, 4);
  flat.list(flat.field(at, 3), tensor.name.size(), tensor.name);
  return at;
}

// Builds a model of subgraphs. The buffers come in a list, and buffer 0 is empty, as TensorFlow has it.
inline std::string tflite_file(const std::vector<std::vector<TfliteTensor>>& subgraphs,
                               const std::vector<std::string>& buffers, TflitePlaces* places = nullptr) {
  FlatBuilder flat;
  const std::size_t model = flat.table({4, 0, 4, 0, 4});
  flat.point(0, model);
  const std::size_t graphs = flat.pointers(flat.field(model, 2), subgraphs.size());
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    const std::size_t graph = flat.table({4});
    flat.point(graphs + 4 * i, graph);
    const std::size_t tensors = flat.pointers(flat.field(graph, 0), subgraphs[i].size());
    if (places != nullptr) places->tensors = tensors;
    for (std::size_t j = 0; j < subgraphs[i].size(); ++j)
      flat.point(tensors + 4 * j, tflite_tensor(flat, subgraphs[i][j]));
  }
  const std::size_t holders = flat.pointers(flat.field(model, 4), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::size_t holder = flat.table({buffers[i].empty() ? 0U : 4U});
    flat.point(holders + 4 * i, holder);
    if (!buffers[i].empty()) flat.list(flat.field(holder, 0), buffers[i].size(), buffers[i]);
  }
  if (places != nullptr) {
    places->model = model;
    places->buffers = holders;
  }
  return flat.bytes;
}

}  // namespace weft::testing

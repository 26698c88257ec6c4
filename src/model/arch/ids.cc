#include <algorithm>
#include <array>
#include <map>

#include "base/sha256.h"
#include "weft/model/arch.h"

namespace weft {
namespace {

// The text that is hashed. Lengths lead, so that two different vertices never make the same text.
class Words {
 public:
  void clear() { text_.clear(); }
  void number(std::uint64_t value) {
    std::array<char, 8> bytes{};
    for (char& byte : bytes) {
      byte = static_cast<char>(value);
      value >>= 8U;
    }
    text_.append(bytes.data(), bytes.size());
  }
  void text(std::string_view value) {
    number(value.size());
    text_ += value;
  }
  void raw(std::string_view value) { text_ += value; }
  void digest(const Digest& value) {
    text_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  }
  Digest hash() const { return sha256(std::as_bytes(std::span(text_))); }

 private:
  std::string text_;
};

Digest id_of(const GraphVertex& vertex, std::vector<Digest>& inputs, Words& words) {
  words.clear();
  words.raw("weft-layer-1");
  words.text(vertex.kind);
  words.number(vertex.params.size());
  for (const auto& [key, value] : vertex.params) {
    words.text(key);
    words.text(value);
  }
  words.number(vertex.tensors.size());
  for (const GraphTensor& tensor : vertex.tensors) {
    words.text(tensor.role);
    words.text(dtype_info(tensor.dtype)->name);
    words.number(tensor.shape.size());
    for (std::uint64_t dimension : tensor.shape) words.number(dimension);
  }
  if (vertex.summed) std::ranges::sort(inputs);
  words.raw(vertex.summed ? std::string_view("\1", 1) : std::string_view("\0", 1));
  words.number(inputs.size());
  for (const Digest& input : inputs) words.digest(input);
  return words.hash();
}

}  // namespace

std::vector<Digest> vertex_ids(const ArchGraph& graph) {
  std::vector<Digest> ids;
  ids.reserve(graph.vertices.size());
  Words words;
  std::vector<Digest> inputs;
  for (const GraphVertex& vertex : graph.vertices) {
    inputs.clear();
    for (std::uint32_t input : vertex.inputs) inputs.push_back(ids[input]);
    ids.push_back(id_of(vertex, inputs, words));
  }
  return ids;
}

Digest graph_id(std::span<const Digest> ids) {
  std::vector<Digest> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  Words words;
  words.raw("weft-graph-1");
  for (const Digest& id : sorted) words.digest(id);
  return words.hash();
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> common_prefix(std::span<const Digest> a,
                                                                   std::span<const Digest> b) {
  std::map<Digest, std::vector<std::uint32_t>> left;  // positions in b, the last first
  for (std::size_t i = b.size(); i > 0; --i) left[b[i - 1]].push_back(static_cast<std::uint32_t>(i - 1));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    auto it = left.find(a[i]);
    if (it == left.end() || it->second.empty()) continue;
    pairs.emplace_back(i, it->second.back());
    it->second.pop_back();
  }
  return pairs;
}

}  // namespace weft

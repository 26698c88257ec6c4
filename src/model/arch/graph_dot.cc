#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "weft/model/arch.h"

namespace weft {
namespace {

std::string escaped_label(std::string_view text) {
  std::string out;
  for (char c : printable(text, limits::kTensorNameMax)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Returns a short description: "linear [768, 3072] F32"
std::string facts_of(const GraphVertex& vertex) {
  std::string text = vertex.kind;
  const GraphTensor* main = nullptr;
  for (const GraphTensor& tensor : vertex.tensors)
    if (main == nullptr || tensor.shape.size() > main->shape.size()) main = &tensor;
  if (main != nullptr) text += fmt::format(" {} {}", shape_text(main->shape), dtype_info(main->dtype)->name);
  return text;
}

}  // namespace

std::string graph_dot(const ArchGraph& graph) {
  std::string dot =
      "digraph architecture {\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
  dot += fmt::format("  label=\"{}\";\n", escaped_label(graph.family));
  for (std::size_t i = 0; i < graph.vertices.size(); ++i) {
    const GraphVertex& vertex = graph.vertices[i];
    std::string name = vertex.name.empty() ? "" : escaped_label(vertex.name) + "\\n";
    dot += fmt::format("  v{} [label=\"{}{}\"];\n", i, name, escaped_label(facts_of(vertex)));
    for (std::uint32_t input : vertex.inputs) dot += fmt::format("  v{} -> v{};\n", input, i);
  }
  return dot + "}\n";
}

}  // namespace weft

#include <algorithm>

#include "base/glob.h"
#include "base/text.h"
#include "model/find/query.h"

namespace weft {
namespace {

using Node = Query::Node;

bool of_manifest(FindField field) {
  switch (field) {
    case FindField::family:
    case FindField::kind:
    case FindField::layer:
    case FindField::tensor:
    case FindField::dtype:
    case FindField::file:
    case FindField::parameters:
    case FindField::layers:
    case FindField::tensors:
    case FindField::files:
      return true;
    default:
      return false;
  }
}

bool needs(const Node& node) {
  return node.kind == Node::Kind::path || (node.kind == Node::Kind::fact && of_manifest(node.fact.field)) ||
         std::ranges::any_of(node.inner, needs);
}

// True if any value of this field passes the test.
template <class Test>
bool any_text(const FindSubject& subject, FindField field, const Test& test) {
  auto any = [&](const auto& items, auto text) {
    return std::ranges::any_of(items, [&](const auto& i) { return test(text(i)); });
  };
  auto itself = [](const std::string& text) -> const std::string& { return text; };
  auto in_files = [&](auto text) {
    return std::ranges::any_of(subject.manifest->files, [&](const File& file) { return any(file.tensors, text); });
  };
  switch (field) {
    case FindField::model:
      return test(subject.version.model_name);
    case FindField::message:
      return test(subject.version.message);
    case FindField::tag:
      return any(subject.tags, itself);
    case FindField::parent:
      return any(subject.version.parents, [](const ParentRef& p) { return spec_of(p.model, p.number); });
    case FindField::family:
      return test(subject.graph->family);
    case FindField::kind:
      return any(subject.graph->vertices, [](const GraphVertex& v) -> const std::string& { return v.kind; });
    case FindField::layer:
      return any(subject.graph->vertices, [](const GraphVertex& v) -> const std::string& { return v.name; });
    case FindField::file:
      return any(published_files(*subject.manifest), [](const File& f) -> const std::string& { return f.path; });
    case FindField::tensor:
      return in_files([](const Tensor& t) -> const std::string& { return t.name; });
    case FindField::dtype:
      return in_files([](const Tensor& t) { return dtype_info(t.dtype)->name; });
    default:
      return false;
  }
}

bool text_holds(const FindFact& fact, const FindSubject& subject) {
  // A parent may be named without its number. `!=` holds if no value is equal.
  auto equal = [&](std::string_view text) {
    bool bare = fact.field == FindField::parent && fact.text.find('@') == std::string::npos;
    return (bare ? text.substr(0, text.rfind('@')) : text) == fact.text;
  };
  auto like = [&](std::string_view text) { return glob_matches(fact.text, text); };
  if (fact.op == FindOp::glob) return any_text(subject, fact.field, like);
  return any_text(subject, fact.field, equal) == (fact.op == FindOp::equal);
}

template <class Number>
bool compares(Number have, FindOp op, Number want) {
  switch (op) {
    case FindOp::equal:
      return have == want;
    case FindOp::unequal:
      return have != want;
    case FindOp::less:
      return have < want;
    case FindOp::at_most:
      return have <= want;
    case FindOp::more:
      return have > want;
    case FindOp::at_least:
      return have >= want;
    case FindOp::glob:
      break;
  }
  return false;
}

std::optional<double> metric_of(const FindSubject& subject, const std::string& name) {
  for (const auto& [key, text] : subject.version.metrics)
    if (key == name) return parse_real(text);
  return std::nullopt;
}

std::optional<double> number_in(const FindFact& fact, const FindSubject& subject) {
  auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  switch (fact.field) {
    case FindField::version:
      return number(subject.version.number);
    case FindField::bytes:
      return number(subject.version.logical_bytes);
    case FindField::parameters:
      return number(parameter_count(*subject.manifest));
    case FindField::layers:
      return number(subject.graph->vertices.size());
    case FindField::tensors:
      return number(tensor_count(*subject.manifest));
    case FindField::files:
      return number(published_files(*subject.manifest).size());
    case FindField::metric:
      return metric_of(subject, fact.metric);
    default:
      return std::nullopt;
  }
}

// A version without the metric fails every comparison, `!=` too.
bool fact_holds(const FindFact& fact, const FindSubject& subject) {
  if (fact.field <= FindField::file) return text_holds(fact, subject);
  if (fact.field == FindField::time) return compares(subject.version.time_ns, fact.op, fact.time_ns);
  std::optional<double> number = number_in(fact, subject);
  return number && compares(*number, fact.op, fact.number);
}

bool tensor_fits(const GraphTensor& tensor, const LayerPattern& pattern) {
  if (!pattern.dtype.empty() && dtype_info(tensor.dtype)->name != pattern.dtype) return false;
  if (!pattern.shape) return true;
  return std::ranges::equal(*pattern.shape, tensor.shape,
                            [](const auto& want, std::uint64_t have) { return !want || *want == have; });
}

bool layer_fits(const GraphVertex& vertex, const LayerPattern& pattern) {
  if (!glob_matches(pattern.kind, vertex.kind)) return false;
  if (!pattern.name.empty() && !glob_matches(pattern.name, vertex.name)) return false;
  for (const auto& wanted : pattern.params) {
    auto has = [&](const auto& param) {
      return param.first == wanted.first && glob_matches(wanted.second, param.second);
    };
    if (std::ranges::none_of(vertex.params, has)) return false;
  }
  bool any = !pattern.shape && pattern.dtype.empty();
  return any || std::ranges::any_of(vertex.tensors, [&](const auto& tensor) { return tensor_fits(tensor, pattern); });
}

// Finds, for each layer of the path, the vertices that can be its end so far. Vertices come after their inputs.
bool has_path(const ArchGraph& graph, const std::vector<LayerPattern>& path) {
  std::vector<bool> ends;
  for (const LayerPattern& pattern : path) {
    std::vector<bool> next(graph.vertices.size());
    std::vector<bool> below(graph.vertices.size());  // a vertex upstream is an end
    bool any = false;
    for (std::size_t i = 0; i < graph.vertices.size(); ++i) {
      const GraphVertex& vertex = graph.vertices[i];
      bool after = ends.empty();
      for (std::uint32_t input : vertex.inputs) {
        if (ends.empty()) break;
        below[i] = below[i] || ends[input] || below[input];
        after |= ends[input];
      }
      next[i] = (after || (pattern.far && below[i])) && layer_fits(vertex, pattern);
      any |= next[i];
    }
    if (!any) return false;
    ends = std::move(next);
  }
  return true;
}

bool holds(const Node& node, const FindSubject& subject) {
  auto inner = [&](const Node& one) { return holds(one, subject); };
  switch (node.kind) {
    case Node::Kind::all:
      return std::ranges::all_of(node.inner, inner);
    case Node::Kind::any:
      return std::ranges::any_of(node.inner, inner);
    case Node::Kind::no:
      return !inner(node.inner[0]);
    case Node::Kind::fact:
      return fact_holds(node.fact, subject);
    case Node::Kind::path:
      return has_path(*subject.graph, node.path);
  }
  return false;
}

}  // namespace

bool Query::needs_manifest() const {
  return needs(*root_);
}

bool Query::matches(const FindSubject& subject) const {
  return holds(*root_, subject);
}

}  // namespace weft

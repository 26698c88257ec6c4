// The JSON of a graph, as `weft info --graph json` writes it and `weft match` reads it.
#include <fmt/core.h>

#include <algorithm>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "weft/model/arch.h"

namespace weft {
namespace {

std::string vertex_line(const GraphVertex& vertex, const Digest& id) {
  JsonWriter json;
  json.begin_object().member("kind", std::string_view(vertex.kind)).member("name", std::string_view(vertex.name));
  json.key("params").begin_object();
  for (const auto& [key, value] : vertex.params) json.member(key, std::string_view(value));
  json.end_object().key("tensors").begin_array();
  for (const GraphTensor& tensor : vertex.tensors) {
    json.begin_object().member("role", std::string_view(tensor.role)).member("name", std::string_view(tensor.name));
    json.member("dtype", dtype_info(tensor.dtype)->name).key("shape").begin_array();
    for (std::uint64_t dimension : tensor.shape) json.value(dimension);
    json.end_array().end_object();
  }
  json.end_array().key("inputs").begin_array();
  for (std::uint32_t input : vertex.inputs) json.value(std::uint64_t{input});
  json.end_array().member("summed", vertex.summed).member("id", std::string_view(to_hex(id))).end_object();
  return json.take();
}

// The place of a value in the document. Everything below an unknown key is skipped.
enum class At {
  top,
  family,
  vertices,
  vertex,
  kind,
  name,
  params,
  param,
  tensors,
  tensor,
  role,
  tensor_name,
  dtype,
  shape,
  inputs,
  summed,
  unknown
};

At inner(At object, std::string_view key) {
  struct Step {
    std::string_view key;
    At object;
    At to;
  };
  static constexpr Step kSteps[] = {
      {"family", At::top, At::family},       {"vertices", At::top, At::vertices}, {"kind", At::vertex, At::kind},
      {"name", At::vertex, At::name},        {"params", At::vertex, At::params},  {"tensors", At::vertex, At::tensors},
      {"inputs", At::vertex, At::inputs},    {"summed", At::vertex, At::summed},  {"role", At::tensor, At::role},
      {"name", At::tensor, At::tensor_name}, {"dtype", At::tensor, At::dtype},    {"shape", At::tensor, At::shape},
  };
  if (object == At::params) return At::param;
  for (const Step& step : kSteps)
    if (step.object == object && step.key == key) return step.to;
  return At::unknown;
}

class GraphReader final : public JsonHandler {
 public:
  Status begin_object() override {
    At at = here();
    if (at == At::unknown) return push(At::unknown);
    if (stack_.empty()) return push(At::top);
    if (at == At::vertices) {
      if (graph_.vertices.size() >= limits::kArchLayersMax)
        return bad(fmt::format("expected at most {} vertices, got more", limits::kArchLayersMax));
      graph_.vertices.emplace_back();
      return push(At::vertex);
    }
    if (at == At::tensors) {
      vertex().tensors.emplace_back();
      return push(At::tensor);
    }
    return at == At::params ? push(At::params) : bad("expected no object here, got one");
  }
  Status end_object() override { return pop(); }
  Status begin_array() override {
    At at = here();
    bool list = at == At::vertices || at == At::tensors || at == At::inputs || at == At::shape || at == At::unknown;
    return list && !stack_.empty() ? push(at) : bad("expected no list here, got one");
  }
  Status end_array() override { return pop(); }
  Status key(std::string_view name) override {
    at_ = inner(stack_.back(), name);
    key_ = name;
    return {};
  }
  Status text(std::string_view value) override {
    switch (here()) {
      case At::family:
        graph_.family = value;
        return {};
      case At::kind:
        vertex().kind = value;
        return {};
      case At::name:
        vertex().name = value;
        return {};
      case At::param:
        vertex().params.emplace_back(key_, value);
        return {};
      case At::role:
        tensor().role = value;
        return {};
      case At::tensor_name:
        tensor().name = value;
        return {};
      case At::dtype:
        return dtype(value);
      case At::unknown:
        return {};
      default:
        return bad("expected no text here, got one");
    }
  }
  Status number(std::uint64_t value) override {
    At at = here();
    if (at == At::shape) {
      if (tensor().shape.size() >= limits::kDimensionsMax) return bad("too many dimensions");
      tensor().shape.push_back(value);
    } else if (at == At::inputs) {
      if (++edges_ > limits::kArchEdgesMax || value > UINT32_MAX) return bad("impossible inputs");
      vertex().inputs.push_back(static_cast<std::uint32_t>(value));
    } else if (at != At::unknown) {
      return bad("expected no number here, got one");
    }
    return {};
  }
  Status boolean(bool value) override {
    if (here() == At::summed)
      vertex().summed = value;
    else if (here() != At::unknown)
      return bad("expected no truth value here, got one");
    return {};
  }
  Status negative(std::int64_t) override { return other("negative number"); }
  Status real(double) override { return other("fraction"); }
  Status null() override { return other("null"); }

  bool whole() const { return seen_; }
  ArchGraph take() { return std::move(graph_); }

 private:
  static Error bad(std::string message) { return Error{Errc::invalid, std::move(message)}; }
  Status other(std::string_view what) {
    return here() == At::unknown ? Status{} : Status{bad(fmt::format("expected no {} here, got one", what))};
  }

  At here() const { return at_; }
  GraphVertex& vertex() { return graph_.vertices.back(); }
  GraphTensor& tensor() { return vertex().tensors.back(); }

  Status dtype(std::string_view name) {
    const DTypeInfo* info = dtype_by_name(name);
    if (info == nullptr) return bad(fmt::format("unknown element type {}", printable(name)));
    tensor().dtype = info->type;
    return {};
  }

  // at_ is the place of the next value in the innermost container: in a list, the list itself.
  Status push(At at) {
    seen_ = true;
    stack_.push_back(at);
    at_ = at;
    return {};
  }
  Status pop() {
    stack_.pop_back();
    at_ = stack_.empty() ? At::unknown : stack_.back();
    return {};
  }

  std::vector<At> stack_;
  At at_ = At::top;
  std::string key_;
  bool seen_ = false;
  std::uint64_t edges_ = 0;
  ArchGraph graph_;
};

Status check_vertex(const GraphVertex& vertex, std::size_t index) {
  auto broken = [&](std::string_view what) { return Error{Errc::invalid, fmt::format("vertex {}: {}", index, what)}; };
  auto text_ok = [](std::string_view text, std::size_t max) { return text.size() <= max && valid_utf8(text); };
  if (vertex.kind.empty() || !text_ok(vertex.kind, limits::kArchTextMax)) return broken("expected a short kind");
  if (!text_ok(vertex.name, limits::kTensorNameMax)) return broken("expected a name of bounded length in UTF-8");
  if (vertex.params.size() > limits::kArchParamsMax) return broken("too many parameters");
  for (std::size_t i = 0; i < vertex.params.size(); ++i) {
    const auto& [key, value] = vertex.params[i];
    if (!text_ok(key, limits::kConfigTextMax) || !text_ok(value, limits::kConfigTextMax))
      return broken("expected short parameters");
    if (i > 0 && key <= vertex.params[i - 1].first) return broken("expected parameters by key, each once");
  }
  for (std::size_t i = 0; i < vertex.tensors.size(); ++i) {
    const GraphTensor& tensor = vertex.tensors[i];
    if (!text_ok(tensor.role, limits::kTensorNameMax) || !text_ok(tensor.name, limits::kTensorNameMax))
      return broken("expected tensor names of bounded length in UTF-8");
    if (dtype_info(tensor.dtype) == nullptr) return broken("unknown element type");
    if (i > 0 && tensor.role <= vertex.tensors[i - 1].role) return broken("expected tensors by role, each once");
  }
  for (std::uint32_t input : vertex.inputs)
    if (input >= index) return broken(fmt::format("expected inputs that stand before it, got {}", input));
  if (vertex.summed && vertex.inputs.size() < 2) return broken("expected two inputs or more to sum");
  return {};
}

}  // namespace

std::string graph_json(const ArchGraph& graph) {
  std::vector<Digest> ids = vertex_ids(graph);
  JsonWriter json(true);
  json.begin_object().member("family", std::string_view(graph.family));
  json.member("id", std::string_view(to_hex(graph_id(ids)))).key("vertices").begin_array();
  for (std::size_t i = 0; i < ids.size(); ++i) json.raw(vertex_line(graph.vertices[i], ids[i]));
  json.end_array().end_object();
  return json.take() + "\n";
}

Status check_graph(const ArchGraph& graph) {
  if (graph.family.size() > limits::kArchFamilyMax || !valid_utf8(graph.family))
    return Error{Errc::invalid, "expected a short family in UTF-8"};
  if (graph.vertices.size() > limits::kArchLayersMax)
    return Error{Errc::invalid,
                 fmt::format("expected at most {} vertices, got {}", limits::kArchLayersMax, graph.vertices.size())};
  std::uint64_t edges = 0;
  for (std::size_t i = 0; i < graph.vertices.size(); ++i) {
    WEFT_CHECK(check_vertex(graph.vertices[i], i));
    edges += graph.vertices[i].inputs.size();
  }
  if (edges > limits::kArchEdgesMax)
    return Error{Errc::invalid, fmt::format("expected at most {} inputs, got {}", limits::kArchEdgesMax, edges)};
  return {};
}

Result<ArchGraph> parse_graph_json(std::string_view where, std::string_view text) {
  auto invalid = [&](const Error& error) { return Error{error.code, fmt::format("{}: {}", where, error.message)}; };
  if (text.size() > limits::kGraphJsonMax)
    return Error{Errc::invalid,
                 fmt::format("{}: expected at most {} bytes, got {}", where, limits::kGraphJsonMax, text.size())};
  GraphReader reader;
  if (Status status = parse_json(text, limits::kJsonDepthMax, reader); !status.ok()) return invalid(status.error());
  if (!reader.whole()) return Error{Errc::invalid, fmt::format("{}: expected an object, got another value", where)};
  ArchGraph graph = reader.take();
  for (GraphVertex& vertex : graph.vertices) {
    std::ranges::sort(vertex.params);
    std::ranges::sort(vertex.tensors, {}, &GraphTensor::role);
    vertex.summed = vertex.summed && vertex.inputs.size() > 1;
  }
  if (Status status = check_graph(graph); !status.ok()) return invalid(status.error());
  return graph;
}

}  // namespace weft

// info.json and layer.json: one line for each file and tensor, so that people and grep can read them too.
#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "weft/model/coverage.h"
#include "weft/model/lineage.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

std::string_view digits_off(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
}

// True for a number as RFC 8259 writes it, so that metrics are numbers to jq.
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  std::string_view rest = digits_off(text);
  if (rest.size() == text.size() || (text[0] == '0' && text.size() - rest.size() > 1)) return false;
  if (rest.starts_with('.')) {
    std::string_view fraction = rest.substr(1);
    rest = digits_off(fraction);
    if (rest.size() == fraction.size()) return false;
  }
  if (rest.empty()) return true;
  if (rest[0] != 'e' && rest[0] != 'E') return false;
  rest.remove_prefix(1);
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  return !rest.empty() && digits_off(rest).empty();
}

void write_numbers(JsonWriter& json, std::string_view key, const std::vector<std::uint64_t>& numbers) {
  json.key(key).begin_array();
  for (const std::uint64_t number : numbers) json.value(number);
  json.end_array();
}

void write_texts(JsonWriter& json, std::string_view key,
                 const std::vector<std::pair<std::string, std::string>>& texts) {
  json.key(key).begin_object();
  for (const auto& [name, value] : texts) json.member(name, std::string_view(value));
  json.end_object();
}

void write_content(JsonWriter& json, const Extent& extent) {
  json.member("offset", extent.offset).member("bytes", extent.id.length);
  json.member("sha256_tree", std::string_view(to_hex(extent.id.root)));
}

void write_hidden(JsonWriter& json, const File& file) {
  json.key("hidden").begin_array();
  for (const HiddenTensor& hidden : file.hidden) {
    json.begin_object().member("name", std::string_view(hidden.name));
    if (hidden.dtype) {
      json.member("dtype", dtype_info(*hidden.dtype)->name);
      write_numbers(json, "shape", hidden.shape);
    }
    json.member("bytes", hidden.bytes).member("why", std::string_view(hidden.why)).end_object();
  }
  json.end_array();
  if (file.hidden_more > 0) json.member("hidden_more", file.hidden_more);
}

// Only a file with tensors has a coverage.
std::string file_line(const File& file, const Coverage& coverage = {}) {
  JsonWriter json;
  json.begin_object().member("path", std::string_view(file.path)).member("bytes", file.size);
  json.key("sha256");
  if (file.sha256)
    json.value(std::string_view(to_hex(*file.sha256)));
  else
    json.null();
  json.member("format", std::string_view(file.format));
  json.member("extents", std::uint64_t{file.extents.size()}).member("tensors", std::uint64_t{file.tensors.size()});
  if (!file.tensors.empty() || !file.hidden.empty())
    json.member("in_tensors", coverage.in_tensors).key("coverage").value(coverage.share());
  if (!file.metadata.empty()) write_texts(json, "metadata", file.metadata);
  if (!file.hidden.empty()) write_hidden(json, file);
  return json.end_object().take();
}

// Writes the runs of a scattered tensor by their offsets in published files.
void write_runs(JsonWriter& json, const Manifest& manifest, const Tensor& tensor) {
  json.key("runs").begin_array();
  for (const TensorRun& run : tensor.runs) {
    const File& file = manifest.files[run.file];
    json.begin_object().member("file", std::string_view(file.path));
    json.member("offset", file.extents[run.extent].offset + run.offset).member("bytes", run.length).end_object();
  }
  json.end_array();
  if (!tensor.strides.empty()) write_numbers(json, "strides", tensor.strides);
  if (!tensor.grid.empty()) write_numbers(json, "grid", tensor.grid);
}

std::string tensor_line(const Manifest& manifest, const File& file, const Tensor& tensor) {
  JsonWriter json;
  json.begin_object().member("name", std::string_view(tensor.name)).member("file", std::string_view(file.path));
  json.member("dtype", dtype_info(tensor.dtype)->name);
  write_numbers(json, "shape", tensor.shape);
  if (tensor.extent != kNoExtent)
    write_content(json, file.extents[tensor.extent]);
  else
    json.member("bytes", stored_bytes(file, tensor));
  if (tensor.scattered()) write_runs(json, manifest, tensor);
  return json.end_object().take();
}

void write_facts(JsonWriter& json, const VersionRow& version) {
  json.member("model", std::string_view(version.model_name)).member("version", version.number);
  json.member("time", std::string_view(utc_time(version.time_ns))).member("time_ns", version.time_ns);
  json.member("manifest", std::string_view(to_hex(version.manifest)))
      .member("message", std::string_view(version.message));
  json.member("publisher", std::string_view(version.publisher)).member("user", std::string_view(version.by.user));
  json.member("node", std::string_view(version.by.node));
  json.key("source").raw(source_json(version.source)).key("metrics").begin_object();
  for (const auto& [name, value] : version.metrics)
    json.key(name).raw(is_json_number(value) ? value : json_quote(value));
  json.end_object().key("parents").begin_array();
  for (const ParentRef& parent : version.parents) json.raw(edge_json(parent));
  json.end_array().key("parents_elsewhere").begin_array();
  for (const std::string& name : version.elsewhere) json.value(std::string_view(name));
  json.end_array();
}

struct Totals {
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;

  void add(const File& file, const Tensor& tensor) {
    std::uint64_t elements = element_count(tensor.shape).value_or(UINT64_MAX);
    if (__builtin_add_overflow(parameters, elements, &parameters)) parameters = UINT64_MAX;
    bytes += stored_bytes(file, tensor);
  }
};

Totals totals_of(const Manifest& manifest) {
  Totals totals;
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors) totals.add(file, tensor);
  return totals;
}

Totals totals_of(const Manifest& manifest, std::span<const TensorRef> tensors) {
  Totals totals;
  for (const TensorRef& ref : tensors)
    totals.add(manifest.files[ref.file], manifest.files[ref.file].tensors[ref.tensor]);
  return totals;
}

// Returns the layers right below a layer, in manifest order.
std::vector<std::uint32_t> inner_layers(const VersionTree& tree, std::uint32_t layer) {
  std::vector<std::uint32_t> inner;
  for (std::uint32_t index : tree.children(tree.layers()[layer].dir)) {
    const Node& node = tree.node(index);
    if (node.kind == NodeKind::dir && !node.name.starts_with('@')) inner.push_back(node.layer);
  }
  std::ranges::sort(inner);
  return inner;
}

// Writes "architecture" of info.json: a summary, without the single layers.
void write_architecture(JsonWriter& json, const Architecture& architecture, const std::vector<Digest>& ids) {
  json.key("architecture");
  if (architecture.layers.empty()) {
    json.null();
    return;
  }
  std::map<std::string_view, std::uint64_t> kinds;
  for (const ArchLayer& layer : architecture.layers) ++kinds[layer.kind];
  JsonWriter line;
  line.begin_object().member("family", std::string_view(architecture.family));
  line.member("id", std::string_view(to_hex(graph_id(ids))));
  line.member("layers", std::uint64_t{architecture.layers.size()}).key("kinds").begin_object();
  for (const auto& [kind, count] : kinds) line.member(kind, count);
  json.raw(line.end_object().end_object().take());
}

void write_inputs(JsonWriter& line, const ArchLayer& layer) {
  line.key("inputs").begin_array();
  for (std::uint32_t input : layer.inputs) line.value(std::uint64_t{input});
  line.end_array().member("summed", layer.summed).end_object();
}

// Writes "graph" of info.json: a line for each vertex. Its other facts are in its layer.json.
void write_graph(JsonWriter& json, const Architecture& architecture, const std::vector<Digest>& ids) {
  json.key("graph");
  if (architecture.layers.size() > limits::kInfoVerticesMax) {
    json.null();
    return;
  }
  json.begin_array();
  for (std::size_t i = 0; i < architecture.layers.size(); ++i) {
    const ArchLayer& layer = architecture.layers[i];
    JsonWriter line;
    line.begin_object().member("layer", std::string_view(layer.name)).member("kind", std::string_view(layer.kind));
    line.member("id", std::string_view(to_hex(ids[i])));
    write_inputs(line, layer);
    json.raw(line.take());
  }
  json.end_array();
}

// Writes the vertex of a layer into its layer.json.
void write_vertex(JsonWriter& json, const VersionTree& tree, std::uint32_t vertex) {
  const std::vector<ArchLayer>& layers = tree.manifest().architecture.layers;
  const ArchLayer& layer = layers[vertex];
  JsonWriter line;
  line.begin_object().member("id", std::string_view(to_hex(tree.vertex_ids()[vertex])));
  line.member("position", std::uint64_t{vertex});
  write_inputs(line, layer);
  json.member("kind", std::string_view(layer.kind));
  write_texts(json, "params", layer.params);
  json.key("vertex").raw(line.take());
}

std::string container_line(const ContainerFacts& container) {
  JsonWriter json;
  json.begin_object().member("path", std::string_view(container.file->path)).key("records");
  if (container.records)
    json.value(*container.records).member("left_out", container.left_out);
  else
    json.null().member("why", std::string_view(container.why_none));
  return json.end_object().take();
}

std::string render_dataset_json(const VersionRow& version, const Manifest& manifest, const DatasetFacts& dataset) {
  JsonWriter json(true);
  json.begin_object();
  write_facts(json, version);
  json.member("kind", kind_name(manifest.kind)).member("bytes", logical_bytes(manifest));
  json.member("small_files", dataset.small_files).key("containers").begin_array();
  for (const ContainerFacts& container : dataset.containers) json.raw(container_line(container));
  json.end_array().key("files").begin_array();
  for (const File& file : published_files(manifest)) json.raw(file_line(file));
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace

std::string render_info_json(const VersionRow& version, const Manifest& manifest, const DatasetFacts& dataset) {
  if (manifest.kind == VersionKind::dataset) return render_dataset_json(version, manifest, dataset);
  Totals totals = totals_of(manifest);
  JsonWriter json(true);
  json.begin_object();
  write_facts(json, version);
  json.member("bytes", logical_bytes(manifest)).member("tensor_bytes", totals.bytes);
  json.member("parameters", totals.parameters);
  const std::vector<Digest> ids = vertex_ids(graph_of(manifest));
  write_architecture(json, manifest.architecture, ids);
  write_graph(json, manifest.architecture, ids);
  json.key("files").begin_array();
  const std::vector<Coverage> coverage = coverage_of(manifest);
  for (std::size_t i = 0; i < manifest.files.size(); ++i) json.raw(file_line(manifest.files[i], coverage[i]));
  json.end_array().key("tensors").begin_array();
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors) json.raw(tensor_line(manifest, file, tensor));
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string render_layer_json(const VersionTree& tree, std::uint32_t layer) {
  const Manifest& manifest = tree.manifest();
  const Layer& self = tree.layers()[layer];
  Totals totals = totals_of(manifest, self.subtree);
  JsonWriter json(true);
  json.begin_object().member("layer", std::string_view(self.name));
  json.member("tensor_count", std::uint64_t{self.subtree.size()}).member("parameters", totals.parameters);
  json.member("bytes", totals.bytes);
  if (auto vertex = tree.vertex_of(layer)) write_vertex(json, tree, *vertex);
  json.key("tensors").begin_array();
  for (const TensorRef& ref : self.direct) {
    const File& file = manifest.files[ref.file];
    json.raw(tensor_line(manifest, file, file.tensors[ref.tensor]));
  }
  json.end_array().key("layers").begin_array();
  for (std::uint32_t inner : inner_layers(tree, layer)) json.value(std::string_view(tree.layers()[inner].name));
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace weft

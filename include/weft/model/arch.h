// Architectures (model/arch/architecture.cc): the layers of a model and their connections, without regard to names. A
// manifest holds an Architecture, which refers to the manifest's tensors. An ArchGraph stands alone. The id of a vertex
// covers the vertex and everything upstream of it, so two models share a prefix exactly as far as their ids agree.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/result.h"

namespace weft {

struct Manifest;
struct File;

using ArchParams = std::vector<std::pair<std::string, std::string>>;  // sorted by key, each once

// A leaf layer of a manifest. `tensors` are positions among all tensors of the manifest, in (file, tensor) order.
struct ArchLayer {
  std::string kind;  // "linear", "layer_norm", "add", …
  std::string name;  // as in the names of its tensors; "" if it has none
  ArchParams params;
  std::vector<std::pair<std::string, std::uint32_t>> tensors;  // (role, position), by role; each role once
  std::vector<std::uint32_t> inputs;                           // indexes of earlier layers
  bool summed = false;                                         // it adds its inputs: their order does not matter
  bool operator==(const ArchLayer&) const = default;
};

// Each layer stands after its inputs. Empty if there are no tensors, or more layers than limits.h allows.
struct Architecture {
  std::string family;  // "bert", …; "sequence" if only the order of names is known; several are joined by '+'
  std::vector<ArchLayer> layers;
  bool operator==(const Architecture&) const = default;
};

// Reads a whole small published file. The bytes are untrusted.
using ReadFile = std::function<Result<std::string>(const File& file)>;

// Returns the architecture of the manifest's files, which depends only on their content. Calls `read` for files named
// config.json of at most limits::kConfigMax bytes. Ignores a config.json that it does not understand; returns an error
// of `read`.
Result<Architecture> architecture_of(const Manifest& manifest, const ReadFile& read);

struct GraphTensor {
  std::string role;  // "weight", "bias", …
  std::string name;  // the whole name; not part of the id
  DType dtype = DType::u8;
  Shape shape;
  bool operator==(const GraphTensor&) const = default;
};

struct GraphVertex {
  std::string kind;
  std::string name;  // not part of the id
  ArchParams params;
  std::vector<GraphTensor> tensors;
  std::vector<std::uint32_t> inputs;
  bool summed = false;
  bool operator==(const GraphVertex&) const = default;
};

struct ArchGraph {
  std::string family;
  std::vector<GraphVertex> vertices;  // each after its inputs
  bool operator==(const ArchGraph&) const = default;
};

ArchGraph graph_of(const Manifest& manifest);

// Returns the ids of the vertices, by position. They are SHA-256 and not XXH3-128: anybody can publish a model, and a
// forged equal prefix would hand out the wrong tensors.
//   id = SHA-256("weft-layer-1" ‖ texts(kind) ‖ params ‖ tensors ‖ inputs)
// Each text and each list begins with its length as 8 bytes little-endian. params are key, value. tensors are role,
// name of the type, list of dimensions as 8 bytes. inputs are one byte (1 if summed) and the list of their ids, sorted
// if summed. Names of layers and tensors are not included.
std::vector<Digest> vertex_ids(const ArchGraph& graph);
// Returns the SHA-256 of "weft-graph-1" and the sorted ids. Graphs with equal vertices have equal ids.
Digest graph_id(std::span<const Digest> ids);

// Returns the shared part of two graphs, from their inputs on, as pairs of (vertex in a, vertex in b). A vertex is
// shared if the other graph has an equal vertex with an equal upstream. Of vertices with one id, as many are shared as
// both graphs have.
std::vector<std::pair<std::uint32_t, std::uint32_t>> common_prefix(std::span<const Digest> a,
                                                                   std::span<const Digest> b);

std::string graph_json(const ArchGraph& graph);
std::string graph_dot(const ArchGraph& graph);
// Parses the output of graph_json(), or the same written by hand. Errc::invalid; the message starts with `where`.
Result<ArchGraph> parse_graph_json(std::string_view where, std::string_view text);
// Checks the invariants of these structures and the bounds of limits.h.
Status check_graph(const ArchGraph& graph);

}  // namespace weft

// Architectures: what the layers of a model are and how they follow one another, whatever they are called. A manifest
// keeps an Architecture, which leans on its tensors; an ArchGraph stands alone. Each vertex has an id that covers
// itself and all that is upstream of it, so two models share a prefix exactly as far as their ids agree.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
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

using ArchParams = std::vector<std::pair<std::string, std::string>>;  // by key, each once

// A leaf layer of a manifest. `tensors` are positions among all tensors of the manifest, in (file, tensor) order.
struct ArchLayer {
  std::string kind;  // "linear", "layer_norm", "add", …
  std::string name;  // as the tensors call it; "" for one that has no tensors
  ArchParams params;
  std::vector<std::pair<std::string, std::uint32_t>> tensors;  // (role, position), by role; each role once
  std::vector<std::uint32_t> inputs;                           // earlier layers
  bool summed = false;                                         // its inputs are added up: their order does not matter
  bool operator==(const ArchLayer&) const = default;
};

// Layers stand after their inputs. Empty where there are no tensors, or more layers than limits.h allows.
struct Architecture {
  std::string family;  // "bert", …; "sequence" where the order of names is all that is known; several with '+' between
  std::vector<ArchLayer> layers;
  bool operator==(const Architecture&) const = default;
};

// Reads the whole of a small published file; the bytes may be anything.
using ReadFile = std::function<Result<std::string>(const File& file)>;

// The architecture of what the manifest's files hold, which depends on their content alone. `read` is called for files
// named config.json of at most limits::kConfigMax bytes; what cannot be made out of one is passed over, a failure of
// `read` is returned.
Result<Architecture> architecture_of(const Manifest& manifest, const ReadFile& read);

struct GraphTensor {
  std::string role;  // "weight", "bias", …
  std::string name;  // the whole name; not a part of the id
  DType dtype = DType::u8;
  Shape shape;
  bool operator==(const GraphTensor&) const = default;
};

struct GraphVertex {
  std::string kind;
  std::string name;  // not a part of the id
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

// Ids of vertices, by position. SHA-256 and not XXH3-128: anybody can publish a model, and a prefix that only seems
// equal would hand out the wrong tensors.
//   id = SHA-256("weft-layer-1" ‖ texts(kind) ‖ params ‖ tensors ‖ inputs)
// with each text and each list led by its length as 8 bytes little-endian; params as key, value; tensors as role, name
// of the type, list of dimensions as 8 bytes; inputs as one byte (1 when summed) and the list of their ids, sorted when
// summed. Names of layers and tensors are not in it.
std::vector<Digest> vertex_ids(const ArchGraph& graph);
// SHA-256 of "weft-graph-1" and the sorted ids: equal for graphs of equal vertices.
Digest graph_id(std::span<const Digest> ids);

// How much of two graphs is the same from their inputs on: a vertex counts when an equal one with an equal upstream is
// in the other; of vertices that nothing tells apart, as many as both have. Pairs of (vertex in a, vertex in b).
std::vector<std::pair<std::uint32_t, std::uint32_t>> common_prefix(std::span<const Digest> a,
                                                                   std::span<const Digest> b);

std::string graph_json(const ArchGraph& graph);
std::string graph_dot(const ArchGraph& graph);
// What graph_json() wrote, or somebody by hand. Errc::invalid, starting with `where`.
Result<ArchGraph> parse_graph_json(std::string_view where, std::string_view text);
// The promises of these structures and the bounds of limits.h.
Status check_graph(const ArchGraph& graph);

// Elements of all tensors of a vertex; UINT64_MAX where they do not fit.
std::uint64_t parameters_of(const GraphVertex& vertex);

}  // namespace weft

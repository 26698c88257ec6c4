// A query as a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "weft/find.h"

namespace weft {

enum class FindOp : std::uint8_t { equal, unequal, less, at_most, more, at_least, glob };

enum class FindField : std::uint8_t {
  model,
  tag,
  parent,
  message,
  family,
  kind,
  layer,
  tensor,
  dtype,
  file,  // texts
  version,
  bytes,
  parameters,
  layers,
  tensors,
  files,
  metric,  // numbers
  time,    // nanoseconds
};

// "layers >= 12", "metric.loss < 0.3", "tensor ~ '*.bias'"
struct FindFact {
  FindField field = FindField::model;
  std::string metric;  // its name
  FindOp op = FindOp::equal;
  std::string text;
  double number = 0;
  std::uint64_t time_ns = 0;
};

// One layer of a path: "linear[768,*]:F32{act=gelu}@encoder.*"
struct LayerPattern {
  std::string kind;                                                // glob
  std::optional<std::vector<std::optional<std::uint64_t>>> shape;  // of one of its tensors; none: any size
  std::string dtype;                                               // of one of its tensors; "": any
  std::vector<std::pair<std::string, std::string>> params;         // values are globs
  std::string name;                                                // glob; "": any
  bool far = false;  // somewhere after the layer before it, not right after
};

struct FindPath {
  std::vector<LayerPattern> layers;
};

struct Query::Node {
  enum class Kind : std::uint8_t { all, any, no, fact, path } kind = Kind::all;
  std::vector<Node> inner;  // all, any: two or more; no: one
  FindFact fact;
  FindPath path;
};

bool has_path(const ArchGraph& graph, const FindPath& path);

}  // namespace weft

// A query as a tree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/model/find.h"

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
  file,  // up to here: texts
  version,
  bytes,
  parameters,
  layers,
  tensors,
  files,
  metric,  // up to here: numbers
  time,    // nanoseconds
};

// "layers >= 12", "metric.loss < 0.3", "tensor ~ '*.bias'"
struct FindFact {
  FindField field = FindField::model;
  std::string metric;  // name of the metric
  FindOp op = FindOp::equal;
  std::string text;
  double number = 0;
  std::uint64_t time_ns = 0;
};

// One layer of a path: "linear[768,*]:F32{act=gelu}@encoder.*"
struct LayerPattern {
  std::string kind;                                                // glob
  std::optional<std::vector<std::optional<std::uint64_t>>> shape;  // shape of one of its tensors; none: any
  std::string dtype;                                               // type of one of its tensors; "": any
  std::vector<std::pair<std::string, std::string>> params;         // values are globs
  std::string name;                                                // glob; "": any
  bool far = false;  // at any distance after the previous layer; false: next to it
};

struct Query::Node {
  enum class Kind : std::uint8_t { all, any, no, fact, path } kind = Kind::all;
  std::vector<Node> inner;  // all, any: two or more; no: one
  FindFact fact;
  std::vector<LayerPattern> path;
};

}  // namespace weft

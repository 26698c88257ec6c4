// Layered layout of a directed acyclic graph: all edges go one way, cross seldom, and lie straight. The method of
// Sugiyama et al. (1981): layers by longest path, waypoints where an edge passes a layer, order within layers by
// barycentres, positions by least squares under that order. Deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

struct GraphEdges {
  std::size_t nodes = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // from, to; no cycles, no duplicates
};

struct LayoutLimits {
  double waypoint_gap = 0.5;            // the space that a waypoint takes in its layer; a node takes 1
  std::size_t siblings_max = SIZE_MAX;  // more nodes after one node are in several layers, so many in each
};

struct LayoutPoint {
  double layer = 0;   // 0, 1, 2 …: a whole number
  double across = 0;  // from 0; nodes of a layer are 1 or more apart
};

struct GraphLayout {
  std::vector<LayoutPoint> nodes;
  std::vector<std::vector<LayoutPoint>> edges;  // from start to end by waypoints: one point per layer
  std::size_t layers = 0;
  double breadth = 0;  // the largest `across`
};

GraphLayout layered_layout(const GraphEdges& graph, const LayoutLimits& limits = {});

}  // namespace weft

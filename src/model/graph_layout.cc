#include "model/graph_layout.h"

#include <algorithm>

namespace weft {
namespace {

constexpr int kOrderSweeps = 24;
constexpr int kPlaceSweeps = 120;

// A node, or a waypoint of an edge.
struct Vertex {
  std::size_t layer = 0;
  std::size_t order = 0;  // position in its layer
  double across = 0;
  bool waypoint = false;
  std::vector<std::uint32_t> before, after;  // neighbours in the adjacent layers
};

// Returns the number of pairs i < j with values[i] > values[j], by a Fenwick tree. All values are below `bound`.
std::size_t inversions(const std::vector<std::size_t>& values, std::size_t bound) {
  std::vector<std::size_t> tree(bound + 1, 0);
  std::size_t count = 0;
  for (std::size_t seen = 0; seen < values.size(); ++seen) {
    std::size_t not_larger = 0;
    for (std::size_t i = values[seen] + 1; i > 0; i &= i - 1) not_larger += tree[i];
    count += seen - not_larger;
    for (std::size_t i = values[seen] + 1; i <= bound; i += i & (~i + 1)) ++tree[i];
  }
  return count;
}

class Layouter {
 public:
  Layouter(const GraphEdges& graph, const LayoutLimits& limits) : graph_(graph), limits_(limits) {}

  GraphLayout run() {
    make_layers();
    make_vertices();
    order_layers();
    place();
    return result();
  }

 private:
  using Layer = std::vector<std::uint32_t>;

  // Puts each node right after its last predecessor, or a layer further for each siblings_max nodes that the
  // predecessor has before it. Then moves nodes without predecessors right before their first
  // successor.
  void make_layers() {
    layer_of_.assign(graph_.nodes, 0);
    std::vector<std::vector<std::uint32_t>> out(graph_.nodes);
    std::vector<std::size_t> waiting(graph_.nodes, 0);
    for (auto [from, to] : graph_.edges) {
      out[from].push_back(to);
      ++waiting[to];
    }
    std::vector<std::uint32_t> ready;
    for (std::uint32_t node = 0; node < graph_.nodes; ++node)
      if (waiting[node] == 0) ready.push_back(node);
    const std::vector<std::uint32_t> roots = ready;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const auto& after = out[ready[i]];
      for (std::size_t place = 0; place < after.size(); ++place) {
        const std::uint32_t to = after[place];
        layer_of_[to] = std::max(layer_of_[to], layer_of_[ready[i]] + 1 + place / limits_.siblings_max);
        if (--waiting[to] == 0) ready.push_back(to);
      }
    }
    for (std::uint32_t root : roots) {
      if (out[root].empty()) continue;
      std::size_t nearest = SIZE_MAX;
      for (std::uint32_t to : out[root]) nearest = std::min(nearest, layer_of_[to]);
      layer_of_[root] = nearest - 1;
    }
  }

  std::uint32_t add_vertex(std::size_t layer, bool waypoint) {
    if (layers_.size() <= layer) layers_.resize(layer + 1);
    auto index = static_cast<std::uint32_t>(vertices_.size());
    Vertex& vertex = vertices_.emplace_back();
    vertex.layer = layer;
    vertex.waypoint = waypoint;
    vertex.order = layers_[layer].size();
    layers_[layer].push_back(index);
    return index;
  }

  void make_vertices() {
    for (std::size_t node = 0; node < graph_.nodes; ++node) add_vertex(layer_of_[node], false);
    for (auto [from, to] : graph_.edges) {
      std::vector<std::uint32_t>& path = paths_.emplace_back(1, from);
      for (std::size_t layer = layer_of_[from] + 1; layer < layer_of_[to]; ++layer)
        path.push_back(add_vertex(layer, true));
      path.push_back(to);
      for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        vertices_[path[i]].after.push_back(path[i + 1]);
        vertices_[path[i + 1]].before.push_back(path[i]);
      }
    }
  }

  // Orders the vertices by a walk from each root, so that everything below a root is together: trees then have no
  // crossings.
  void order_by_walk() {
    std::vector<bool> seen(vertices_.size(), false);
    std::vector<Layer> ordered(layers_.size());
    for (std::uint32_t root = 0; root < vertices_.size(); ++root) {
      if (!vertices_[root].before.empty()) continue;
      std::vector<std::uint32_t> stack = {root};
      while (!stack.empty()) {
        std::uint32_t at = stack.back();
        stack.pop_back();
        if (seen[at]) continue;
        seen[at] = true;
        ordered[vertices_[at].layer].push_back(at);
        for (std::size_t i = vertices_[at].after.size(); i-- > 0;) stack.push_back(vertices_[at].after[i]);
      }
    }
    layers_ = std::move(ordered);
    number_layers();
  }

  void number_layers() {
    for (const Layer& layer : layers_)
      for (std::size_t i = 0; i < layer.size(); ++i) vertices_[layer[i]].order = i;
  }

  std::size_t crossings() const {
    std::size_t count = 0;
    for (std::size_t l = 0; l + 1 < layers_.size(); ++l) {
      std::vector<std::size_t> ends;
      for (std::uint32_t at : layers_[l]) {
        std::size_t first = ends.size();
        for (std::uint32_t to : vertices_[at].after) ends.push_back(vertices_[to].order);
        std::sort(ends.begin() + static_cast<std::ptrdiff_t>(first), ends.end());
      }
      count += inversions(ends, layers_[l + 1].size());
    }
    return count;
  }

  void sort_layer(std::size_t l, bool by_before) {
    std::vector<std::pair<double, std::uint32_t>> keyed;
    for (std::uint32_t at : layers_[l]) {
      const auto& beside = by_before ? vertices_[at].before : vertices_[at].after;
      double sum = 0;
      for (std::uint32_t other : beside) sum += static_cast<double>(vertices_[other].order);
      keyed.emplace_back(
          beside.empty() ? static_cast<double>(vertices_[at].order) : sum / static_cast<double>(beside.size()), at);
    }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < keyed.size(); ++i) {
      layers_[l][i] = keyed[i].second;
      vertices_[keyed[i].second].order = i;
    }
  }

  void order_layers() {
    order_by_walk();
    std::vector<Layer> best = layers_;
    std::size_t fewest = crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      for (std::size_t i = 1; i < layers_.size(); ++i) {
        std::size_t l = sweep % 2 == 0 ? i : layers_.size() - 1 - i;
        sort_layer(l, sweep % 2 == 0);
      }
      if (std::size_t now = crossings(); now < fewest) {
        fewest = now;
        best = layers_;
      }
    }
    layers_ = std::move(best);
    number_layers();
  }

  double gap(std::uint32_t left, std::uint32_t right) const {
    double a = vertices_[left].waypoint ? limits_.waypoint_gap : 1;
    double b = vertices_[right].waypoint ? limits_.waypoint_gap : 1;
    return (a + b) / 2;
  }

  // Returns the mean position of the neighbours and its weight. Neighbours that make a long edge straight weigh more.
  std::pair<double, double> wish(const Vertex& vertex) const {
    double sum = 0;
    double weight = 0;
    for (const auto* beside : {&vertex.before, &vertex.after})
      for (std::uint32_t other : *beside) {
        double w = vertex.waypoint && vertices_[other].waypoint   ? 32
                   : vertex.waypoint || vertices_[other].waypoint ? 2
                                                                  : 1;
        sum += w * vertices_[other].across;
        weight += w;
      }
    if (weight == 0) return {vertex.across, 0.01};
    return {sum / weight, weight};
  }

  // Places a layer by least squares to the wishes, in order and with gaps: pools neighbours whose wishes conflict.
  void place_layer(const Layer& layer) {
    struct Pool {
      double sum, weight;
      std::size_t count;
      double middle() const { return sum / weight; }
    };
    std::vector<Pool> pools;
    double offset = 0;
    std::vector<double> offsets;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) offset += gap(layer[i - 1], layer[i]);
      offsets.push_back(offset);
      auto [where, weight] = wish(vertices_[layer[i]]);
      pools.push_back({(where - offset) * weight, weight, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].middle() > pools.back().middle()) {
        Pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().weight += last.weight;
        pools.back().count += last.count;
      }
    }
    std::size_t next = 0;
    for (const Pool& pool : pools)
      for (std::size_t i = 0; i < pool.count; ++i, ++next)
        vertices_[layer[next]].across = pool.middle() + offsets[next];
  }

  void place() {
    for (const Layer& layer : layers_) {
      double at = 0;
      for (std::size_t i = 0; i < layer.size(); ++i) {
        if (i > 0) at += gap(layer[i - 1], layer[i]);
        vertices_[layer[i]].across = at;
      }
      for (std::uint32_t v : layer) vertices_[v].across -= at / 2;
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep)
      for (std::size_t i = 0; i < layers_.size(); ++i)
        place_layer(layers_[sweep % 2 == 0 ? i : layers_.size() - 1 - i]);
    double least = 0;
    for (std::size_t i = 0; i < vertices_.size(); ++i)
      least = i == 0 ? vertices_[i].across : std::min(least, vertices_[i].across);
    for (Vertex& vertex : vertices_) vertex.across -= least;
  }

  LayoutPoint point(std::uint32_t vertex) const {
    return {static_cast<double>(vertices_[vertex].layer), vertices_[vertex].across};
  }

  GraphLayout result() const {
    GraphLayout layout;
    layout.layers = layers_.size();
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) layout.nodes.push_back(point(node));
    for (const auto& path : paths_) {
      std::vector<LayoutPoint>& points = layout.edges.emplace_back();
      for (std::uint32_t vertex : path) points.push_back(point(vertex));
    }
    for (const Vertex& vertex : vertices_) layout.breadth = std::max(layout.breadth, vertex.across);
    return layout;
  }

  const GraphEdges& graph_;
  const LayoutLimits limits_;
  std::vector<std::size_t> layer_of_;              // by node
  std::vector<Vertex> vertices_;                   // the nodes, then the waypoints
  std::vector<Layer> layers_;                      // in order
  std::vector<std::vector<std::uint32_t>> paths_;  // by edge
};

}  // namespace

GraphLayout layered_layout(const GraphEdges& graph, const LayoutLimits& limits) {
  return Layouter(graph, limits).run();
}

}  // namespace weft

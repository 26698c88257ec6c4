#include "reference/arch_graphs.h"

#include <algorithm>
#include <deque>

namespace weft::testing {
namespace {

std::uint64_t below(Random& random, std::uint64_t end) {
  return random() % end;
}

GraphVertex random_vertex(Random& random, std::uint32_t earlier) {
  static const char* const kKinds[] = {"linear", "norm", "conv"};
  GraphVertex vertex;
  vertex.kind = kKinds[below(random, 3)];
  if (below(random, 4) == 0) vertex.params.emplace_back("act", below(random, 2) == 0 ? "relu" : "gelu");
  vertex.tensors.push_back({"weight", "any name " + std::to_string(random()), DType::f32, {4, 2 + below(random, 2)}});
  if (earlier == 0) return vertex;
  if (below(random, 12) == 0) return vertex;  // an input vertex
  vertex.inputs.push_back(below(random, 3) == 0 ? static_cast<std::uint32_t>(below(random, earlier)) : earlier - 1);
  while (below(random, 4) == 0 && vertex.inputs.size() < 4)
    vertex.inputs.push_back(static_cast<std::uint32_t>(below(random, earlier)));
  vertex.summed = vertex.inputs.size() > 1 && below(random, 2) == 0;
  return vertex;
}

using Likes = std::vector<std::vector<bool>>;

bool says_the_same(const GraphVertex& a, const GraphVertex& b) {
  if (a.kind != b.kind || a.params != b.params || a.summed != b.summed || a.inputs.size() != b.inputs.size() ||
      a.tensors.size() != b.tensors.size())
    return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i)
    if (a.tensors[i].role != b.tensors[i].role || a.tensors[i].dtype != b.tensors[i].dtype ||
        a.tensors[i].shape != b.tensors[i].shape)
      return false;
  return true;
}

bool inputs_alike(const GraphVertex& a, const GraphVertex& b, const Likes& likes) {
  std::vector<bool> taken(b.inputs.size());
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    bool found = false;
    for (std::size_t j = 0; j < b.inputs.size() && !found; ++j) {
      if (taken[j] || (!a.summed && i != j) || !likes[a.inputs[i]][b.inputs[j]]) continue;
      taken[j] = found = true;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

ArchGraph random_graph(Random& random) {
  ArchGraph graph{"random", {}};
  std::uint64_t size = 1 + below(random, 12);
  for (std::uint32_t i = 0; i < size; ++i) {
    graph.vertices.push_back(random_vertex(random, i));
    if (below(random, 5) == 0) graph.vertices.push_back(graph.vertices.back());
    if (graph.vertices.size() > i + 1) ++i;
  }
  return graph;
}

ArchGraph long_graph(Random& random) {
  ArchGraph graph{"random", {}};
  const std::uint64_t size = 50 + below(random, 151);
  for (std::uint32_t i = 0; i < size; ++i) {
    GraphVertex vertex = random_vertex(random, i);
    if (i > 0 && below(random, 8) != 0) vertex.inputs = {i - 1};
    if (i > 20 && below(random, 6) == 0) vertex.inputs.push_back(static_cast<std::uint32_t>(below(random, i - 20)));
    vertex.summed = vertex.inputs.size() > 1 && below(random, 2) == 0;
    graph.vertices.push_back(std::move(vertex));
  }
  return graph;
}

ArchGraph changed_graph(const ArchGraph& graph, Random& random) {
  ArchGraph changed = graph;
  auto size = static_cast<std::uint32_t>(graph.vertices.size());
  switch (below(random, 3)) {
    case 0:
      changed.vertices[below(random, size)].params = {{"act", std::to_string(below(random, 3))}};
      break;
    case 1:
      for (std::uint64_t more = 1 + below(random, 3); more > 0; --more)
        changed.vertices.push_back(random_vertex(random, static_cast<std::uint32_t>(changed.vertices.size())));
      break;
    default:
      changed.vertices.resize(1 + below(random, size));
  }
  return changed;
}

std::uint64_t walked_prefix(const ArchGraph& a, const ArchGraph& b) {
  std::vector<std::size_t> visits(a.vertices.size());
  std::vector<bool> taken(b.vertices.size());
  std::deque<std::uint32_t> ready;
  Likes likes(a.vertices.size(), std::vector<bool>(b.vertices.size()));
  for (std::uint32_t i = 0; i < a.vertices.size(); ++i)
    if (a.vertices[i].inputs.empty()) ready.push_back(i);
  std::uint64_t prefix = 0;
  while (!ready.empty()) {
    std::uint32_t u = ready.front();
    ready.pop_front();
    bool any = false;
    for (std::uint32_t v = 0; v < b.vertices.size(); ++v) {
      bool like = says_the_same(a.vertices[u], b.vertices[v]) && inputs_alike(a.vertices[u], b.vertices[v], likes);
      likes[u][v] = like;
      any |= like;
    }
    auto free = std::ranges::find_if(b.vertices, [&](const GraphVertex& vertex) {
      auto v = static_cast<std::size_t>(&vertex - b.vertices.data());
      return likes[u][v] && !taken[v];
    });
    if (free != b.vertices.end()) {
      taken[static_cast<std::size_t>(free - b.vertices.begin())] = true;
      ++prefix;
    }
    if (!any) continue;
    for (std::uint32_t next = 0; next < a.vertices.size(); ++next) {
      const auto& inputs = a.vertices[next].inputs;
      auto edges = static_cast<std::size_t>(std::ranges::count(inputs, u));
      visits[next] += edges;
      if (edges > 0 && visits[next] == inputs.size()) ready.push_back(next);
    }
  }
  return prefix;
}

}  // namespace weft::testing

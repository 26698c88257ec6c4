#include "arch_space.h"

#include <deque>
#include <random>

#include "blobs/arch_items.h"

namespace weft::bench {
namespace {

constexpr std::uint64_t kSizes = 6;  // multiples of 16 units
constexpr std::uint64_t kChoices = 1 + kSizes * 5;
constexpr const char* kActivations[] = {"linear", "swish", "relu", "tanh", "sigmoid"};

struct Output {
  std::uint32_t vertex = 0;
  std::uint64_t units = 0;
};

class Sampler {
 public:
  Sampler(const Space& space, std::uint64_t number) : space_(space), random_(number * 2 + (space.skips ? 1 : 0)) {}

  ArchGraph run() {
    graph_.family = "sample";
    graph_.vertices.reserve(2 + space_.layers * (space_.skips ? 6U : 1U));
    graph_.vertices.push_back({"input", "", {{"shape", "32"}}, {}, {}, false});
    Output at{0, 32};
    anchors_.push_back(at);
    for (unsigned i = 0; i < space_.layers; ++i) {
      std::uint64_t choice = random_() % kChoices;
      if (choice != 0) at = dense(at, 16 * (1 + (choice - 1) % kSizes), kActivations[(choice - 1) / kSizes]);
      if (space_.skips) at = with_skips(at);
    }
    dense(at, 1, "linear");
    return std::move(graph_);
  }

 private:
  Output add(GraphVertex vertex, std::uint64_t units) {
    graph_.vertices.push_back(std::move(vertex));
    return {static_cast<std::uint32_t>(graph_.vertices.size() - 1), units};
  }

  Output dense(Output from, std::uint64_t units, const char* activation) {
    std::string name = "dense_" + std::to_string(graph_.vertices.size());
    return add(
        {"dense",
         name,
         {{"act", activation}},
         {{"bias", name + ".bias", DType::f32, {units}}, {"kernel", name + ".kernel", DType::f32, {from.units, units}}},
         {from.vertex},
         false},
        units);
  }

  Output with_skips(Output at) {
    std::vector<std::uint32_t> inputs = {at.vertex};
    for (const Output& anchor : anchors_)
      if (random_() % 2 == 0) inputs.push_back(dense(anchor, at.units, "linear").vertex);
    if (inputs.size() > 1) {
      at = add({"add", "", {}, {}, std::move(inputs), true}, at.units);
      at = add({"activation", "", {{"act", "relu"}}, {}, {at.vertex}, false}, at.units);
    }
    anchors_.push_back(at);
    if (anchors_.size() > 3) anchors_.pop_front();
    return at;
  }

  const Space& space_;
  std::mt19937_64 random_;
  ArchGraph graph_;
  std::deque<Output> anchors_;
};

}  // namespace

ArchGraph sample(const Space& space, std::uint64_t number) {
  return Sampler(space, number).run();
}

std::vector<ArchItem> items_of_sample(const Space& space, std::uint64_t number) {
  ArchGraph graph = sample(space, number);
  return items_of(graph, vertex_ids(graph));
}

}  // namespace weft::bench

#include "blobs/arch_items.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/sha256.h"

namespace weft {
namespace {

struct DigestHash {
  std::size_t operator()(const Digest& digest) const {
    std::size_t hash = 0;
    for (std::size_t i = 0; i < sizeof hash; ++i) hash = hash << 8U | digest.bytes[i];
    return hash;
  }
};

Digest copy_id(const Digest& id, std::uint64_t before) {
  std::string text = "weft-copy-1";
  text.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  for (unsigned shift = 0; shift < 64; shift += 8) text += static_cast<char>(before >> shift);
  return sha256(std::as_bytes(std::span(text)));
}

struct Draft {
  Digest id;
  std::uint64_t level = 0;
  std::vector<std::uint32_t> inputs;  // indices of drafts
};

// Returns one draft per vertex, in the order of the vertices. As an input, the first of equal vertices stands for all.
std::vector<Draft> drafts_of(const ArchGraph& graph, std::span<const Digest> ids) {
  struct Known {
    std::uint32_t first, last;
    std::uint64_t copies;
  };
  std::unordered_map<Digest, Known, DigestHash> known;
  std::vector<Draft> drafts;
  drafts.reserve(ids.size());
  for (std::uint32_t vertex = 0; vertex < ids.size(); ++vertex) {
    Draft& draft = drafts.emplace_back();
    auto [at, is_first] = known.try_emplace(ids[vertex], Known{vertex, vertex, 1});
    if (is_first) {
      draft.id = ids[vertex];
      for (std::uint32_t input : graph.vertices[vertex].inputs) draft.inputs.push_back(known.at(ids[input]).first);
    } else {
      draft.id = copy_id(ids[vertex], at->second.copies++);
      draft.inputs.push_back(std::exchange(at->second.last, vertex));
    }
    for (std::uint32_t input : draft.inputs) draft.level = std::max(draft.level, drafts[input].level + 1);
  }
  return drafts;
}

}  // namespace

std::vector<ArchItem> items_of(const ArchGraph& graph, std::span<const Digest> ids) {
  std::vector<Draft> drafts = drafts_of(graph, ids);
  std::vector<std::uint32_t> order(drafts.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(drafts[i].level, drafts[i].id); });
  std::vector<std::uint32_t> place(drafts.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<ArchItem> items;
  items.reserve(order.size());
  for (std::uint32_t i : order) {
    ArchItem& item = items.emplace_back();
    item.id = drafts[i].id;
    for (std::uint32_t input : drafts[i].inputs) item.inputs.push_back(place[input]);
    std::ranges::sort(item.inputs);
    item.inputs.erase(std::unique(item.inputs.begin(), item.inputs.end()), item.inputs.end());
  }
  return items;
}

}  // namespace weft

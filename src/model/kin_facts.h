// What the drawings of a KinGraph share: its edges, and facts in a few words.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/kin.h"

namespace weft {

class KinIndex {
 public:
  explicit KinIndex(const KinGraph& kin) : kin_(kin), children_(kin.versions.size()) {
    for (std::uint32_t i = 0; i < kin.versions.size(); ++i) by_id_.emplace(kin.versions[i].id, i);
    for (std::uint32_t i = 0; i < kin.versions.size(); ++i)
      for (const ParentRef& parent : kin.versions[i].facts.parents)
        if (auto at = find(parent.id)) children_[*at].push_back(i);
  }

  std::optional<std::uint32_t> find(std::uint64_t id) const {
    auto found = by_id_.find(id);
    return found == by_id_.end() ? std::nullopt : std::optional(found->second);
  }
  // Indices, as the graph has them.
  const std::vector<std::uint32_t>& children(std::uint32_t version) const { return children_[version]; }
  // nullptr when it is no parent of the child.
  const ParentRef* edge(std::uint32_t parent, std::uint32_t child) const {
    for (const ParentRef& ref : kin_.versions[child].facts.parents)
      if (ref.id == kin_.versions[parent].id) return &ref;
    return nullptr;
  }

 private:
  const KinGraph& kin_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
  std::vector<std::vector<std::uint32_t>> children_;
};

inline std::string name_of(const KinVersion& version) {
  return spec_of(version.facts.model, version.facts.number);
}

struct KinEdge {
  std::uint32_t parent, child;  // indices
  const ParentRef* ref;         // of the graph
};
std::vector<KinEdge> edges_of(const KinGraph& kin);  // between versions that it holds

std::string title_of(const KinGraph& kin);          // "Lineage of bert@2"
std::string count_line(const KinGraph& kin);        // "3 versions", "the nearest 40 of 300 versions"
std::string left_out_text(const KinGraph& kin);     // "and 12 more", "and at least 10000 more";
                                                    // "" when all kin are here
std::string facts_line(const KinVersion& version);  // "2024-05-01 · 87.4 MiB"
double part_of(const ParentRef& edge,
               const KinVersion& child);  // of the child's tensor bytes, 0 to 1
std::string percent(double part);         // never "100 %" of what is not all, nor "0 %"
                                          // of what is something

}  // namespace weft

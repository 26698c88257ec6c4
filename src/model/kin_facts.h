// Shared by the drawings of a KinGraph: its edges, and short texts of its facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/model/relatives.h"

namespace weft {

struct KinEdge {
  std::uint32_t parent, child;  // indices into KinGraph::versions
  const ParentRef* ref;         // owned by the graph
};

class KinIndex {
 public:
  explicit KinIndex(const KinGraph& kin) : children_(kin.versions.size()) {
    for (std::uint32_t i = 0; i < kin.versions.size(); ++i) by_id_.emplace(kin.versions[i].id, i);
    for (std::uint32_t i = 0; i < kin.versions.size(); ++i)
      for (const ParentRef& parent : kin.versions[i].parents)
        if (auto at = find(parent.id)) {
          edges_.push_back({*at, i, &parent});
          children_[*at].push_back(edges_.back());
        }
  }

  std::optional<std::uint32_t> find(std::uint64_t id) const {
    auto found = by_id_.find(id);
    return found == by_id_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::vector<KinEdge>& edges() const { return edges_; }  // between versions of the graph
  const std::vector<KinEdge>& children(std::uint32_t version) const { return children_[version]; }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
  std::vector<KinEdge> edges_;
  std::vector<std::vector<KinEdge>> children_;
};

std::string title_of(const KinGraph& kin);    // "Lineage of bert@2"
std::string count_line(const KinGraph& kin);  // "3 versions", "the nearest 40 of 300 versions"
// Returns "and 12 more" or "and at least 10000 more"; "" if no kin were left out.
std::string left_out_text(const KinGraph& kin);
// Facts below a version's name; each may be "". Tags, the first metric, and new bytes: "production, best", "loss
// 0.4213",
// "+87.4 MiB". `day` is set for a removed version ("removed 2024-05-01"), which has no other facts, and for a version
// that lacks all three.
struct CardFacts {
  std::string tags, metric, bytes, day;
};
CardFacts card_facts(const KinGraph& kin, std::size_t version);
std::string facts_line(const CardFacts& facts);  // "production · loss 0.4213 · +87.4 MiB"
double part_of(const ParentRef& edge,
               const VersionRow& child);  // share of the child's tensor bytes, 0 to 1
std::string percent(double part);         // "100 %" only for the whole, "0 %" only for nothing

}  // namespace weft

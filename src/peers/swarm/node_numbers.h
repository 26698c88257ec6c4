// Numbers for nodes, as src/swarm knows them (header only).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "swarm/introductions.h"
#include "swarm/swarm_types.h"

namespace weft {

// A number is never given to another node. Not thread-safe.
class NodeNumbers {
 public:
  static constexpr std::size_t kNodesMax = Introductions::kMembersMax;

  // Returns the number of a node, which gets one if it has none. Nothing: kNodesMax others have one.
  std::optional<SwarmNode> add(std::string_view node) {
    if (const auto known = find(node)) return known;
    if (numbers_.size() >= kNodesMax) return std::nullopt;
    names_.emplace(next_, node);
    numbers_.emplace(node, next_);
    return next_++;
  }
  std::optional<SwarmNode> find(std::string_view node) const {
    const auto at = numbers_.find(node);
    return at == numbers_.end() ? std::nullopt : std::optional(at->second);
  }
  // Returns "" for a number that was forgotten.
  std::string name(SwarmNode number) const {
    const auto at = names_.find(number);
    return at == names_.end() ? std::string() : at->second;
  }
  void forget(SwarmNode number) {
    const auto at = names_.find(number);
    if (at == names_.end()) return;
    numbers_.erase(at->second);
    names_.erase(at);
  }
  // Forgets the nodes for which `is_idle` returns true.
  template <typename Idle>
  void forget_if(const Idle& is_idle) {
    std::erase_if(numbers_, [&](const auto& one) { return is_idle(one.second); });
    std::erase_if(names_, [&](const auto& one) { return is_idle(one.first); });
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::map<std::string, SwarmNode, std::less<>> numbers_;
  std::map<SwarmNode, std::string> names_;
  SwarmNode next_ = 0;
};

}  // namespace weft

// Which nodes keep the versions of a drained node. Pure; for one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "weft/store_rows.h"

namespace weft {

// Chooses a node for each version, once: a node that is asked again for a version has its space subtracted already.
class DrainTargets {
 public:
  void offer(const std::string& node, std::uint64_t free_bytes) { free_[node] = free_bytes; }
  bool empty() const { return free_.empty(); }
  // Forgets the nodes that left the cluster.
  void keep_only(const std::function<bool(const std::string& node)>& is_member) {
    std::erase_if(free_, [&](const auto& one) { return !is_member(one.first); });
  }
  // Returns the node that was chosen before, or else the one with the most free space; null if none has enough.
  std::optional<std::string> target_for(const VersionName& version, std::uint64_t bytes) {
    Choice& choice = choices_[version];
    if (free_.contains(choice.node)) return choice.node;
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at)
      if (!choice.refused.contains(at->first) && (best == free_.end() || at->second > best->second)) best = at;
    if (best == free_.end() || best->second <= bytes) return std::nullopt;
    best->second -= bytes;
    choice.node = best->first;
    choice.bytes = bytes;
    return best->first;
  }
  // The chosen node does not take the version: another one is chosen.
  void refuse(const VersionName& version) {
    Choice& choice = choices_[version];
    if (const auto at = free_.find(choice.node); at != free_.end()) at->second += choice.bytes;
    choice.refused.insert(std::exchange(choice.node, {}));
  }

 private:
  struct Choice {
    std::string node;  // "": none yet
    std::uint64_t bytes = 0;
    std::set<std::string> refused;
  };
  std::map<std::string, std::uint64_t> free_;  // space for versions, by node
  std::map<VersionName, Choice> choices_;
};

}  // namespace weft

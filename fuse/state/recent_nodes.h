// The nodes whose files the server keeps although the kernel needs them no more, in the order of their last use.
// Header only; one thread at a time.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>

#include "fuse/state/node_id.h"

namespace weft {

class RecentNodes {
 public:
  // Adds the node, or makes it the one used last.
  void use(NodeId node) {
    forget(node);
    places_[node] = nodes_.insert(nodes_.end(), node);
  }
  void forget(NodeId node) {
    const auto found = places_.find(node);
    if (found == places_.end()) return;
    nodes_.erase(found->second);
    places_.erase(found);
  }
  // Removes and returns the node whose last use is the longest ago, if there are more than `most`.
  std::optional<NodeId> take_beyond(std::size_t most) {
    if (nodes_.size() <= most) return std::nullopt;
    const NodeId oldest = nodes_.front();
    forget(oldest);
    return oldest;
  }

 private:
  std::list<NodeId> nodes_;  // used last: at the end
  std::unordered_map<NodeId, std::list<NodeId>::iterator> places_;
};

}  // namespace weft

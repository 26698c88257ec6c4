// The kernel's number of an inode. Each inode has two node ids with the same st_ino. The kernel refuses to open one
// node both cached and by passthrough, and a mapping may keep a node open for days. So when a file that is open cached
// gets a backing file, new openers are sent to the other node. Any server can decode either id without state.
#pragma once

#include "weft/programs/vfs.h"

namespace weft {

using NodeId = std::uint64_t;

inline constexpr NodeId kSecondNodeBit = NodeId{1} << 63U;

constexpr Ino ino_of(NodeId node) {
  return node & ~kSecondNodeBit;
}
constexpr NodeId second_node(Ino ino) {
  return ino | kSecondNodeBit;
}

struct Server;

// Returns the node for a lookup: the one that allows the best way of reading.
NodeId choose_node(Server& server, const Attr& attr);
// Expires the names of an inode if one of its nodes is open cached, so that lookups choose a node again. Otherwise
// drops its cached pages: a later open by passthrough would wait for that.
void reconsider_node(Server& server, Ino ino);

}  // namespace weft

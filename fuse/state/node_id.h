// What the kernel calls an inode by. Two node ids lead to each inode of ours, with the same st_ino: the kernel refuses
// to open one cached and passed through at once, and a mapping keeps it open for days; so when a file that is open
// through us gets a backing file, new openers are led to the other. Either says by itself what it is, to any server.
#pragma once

#include "weft/vfs.h"

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

// The node that a name leads to: one that can be opened in the best way there is.
NodeId choose_node(Server& server, const Attr& attr);
// Names of this inode that lead to a node that is open cached are looked up anew. Of one that is not open the kernel
// drops what it has cached of it: else the next open by passthrough would wait for that.
void reconsider_node(Server& server, Ino ino);

}  // namespace weft

// Changes the cluster's key on all nodes, for `weft cluster rotate-key`.
#pragma once

#include <string>
#include <vector>

#include "daemon/peers.h"
#include "daemon_api/control_messages.h"
#include "weft/cluster/key_change.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

// One change, or the rest of one that was interrupted, as the files of this node's keys tell. All nodes accept the new
// key before the first one uses it, and all use it before the first one forgets the old key. This node is the last to
// forget, so a change that ends at any point goes on where it is run again. One thread.
//
// Any holder of the old key can give the nodes a second key. A KeyChange therefore continues only a change whose key
// this node has made. It ends any other change first, and then changes the key once more, to one that it makes.
class KeyChange {
 public:
  // All outlive this. `finish`: goes on without nodes that are away or fail.
  KeyChange(const Registry& registry, Peers& peers, bool finish)
      : registry_(registry), peers_(peers), finish_(finish) {}

  // Errors name the node. Errc::exists: another node has begun a change.
  Result<RotateKeyReport> run();

 private:
  Result<RotateKeyReport> change(KeyState now);
  Result<std::string> accept_everywhere(const KeyState& now);
  void take_back(const std::vector<Member>& members, const std::string& key);
  Status use_everywhere(const std::string& key);
  Status forget_everywhere(const std::string& key);
  void find_away();
  Status order(const Member& member, const KeyOrder& order);
  std::vector<Member> others() const;

  const Registry& registry_;
  Peers& peers_;
  const bool finish_;
  RotateKeyReport report_;
};

}  // namespace weft

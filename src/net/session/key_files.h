// The files of a change of the cluster's key (cluster_keys.h). Each step leaves whole files when it is interrupted.
#pragma once

#include <string>

#include "weft/cluster/key_change.h"
#include "weft/result.h"

namespace weft::net {

// Returns the names of the keys. A second file with the proved key, which an interrupted step leaves, does not count.
Result<KeyState> read_key_state(const std::string& file);
// Returns an order to accept the key of this name, whose file is FILE or FILE.next.
Result<KeyOrder> read_key_order(const std::string& file, const std::string& name);
// Returns an order to accept a new random key.
KeyOrder new_key_order();
// Records, durably, that this node has made the key of this name for a change (KeyState::made), until a step forgets
// the key that it replaces or the key itself. Another holder of the cluster's key can order any key, and leaves no
// record.
Status note_made_key(const std::string& file, const std::string& name);
// Does a step in the files, durably. Errors as KeyFollower::follow().
Status change_key_files(const std::string& file, const KeyOrder& order);

}  // namespace weft::net

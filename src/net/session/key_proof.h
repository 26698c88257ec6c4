// Proofs for the registry that a node holds the cluster's key (Member::key_proof). Any holder of the key makes the
// proof of any node, so it shows only which key a member has, before any message; a handshake proves the rest. The key
// of the proofs is derived from the cluster's key, so a proof says nothing about handshakes and sessions. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "net/session/secret.h"

namespace weft::net {

class KeyProofs {
 public:
  explicit KeyProofs(const Secret& cluster_key);
  std::string of(std::string_view node) const;  // 32 hex digits

 private:
  Secret key_;
};

}  // namespace weft::net

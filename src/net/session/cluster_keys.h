// The keys of a cluster that a node accepts: one, and two while the cluster changes its key.
//
// The key lies in a file, FILE. Beside it there may be FILE.next, a key that is accepted and not used yet, and
// FILE.previous, a key that is still accepted. Any mixture of these files that a change of the key leaves when it is
// interrupted is readable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/live.h"
#include "net/session/key_proof.h"
#include "net/session/secret.h"
#include "weft/cluster/key_change.h"
#include "weft/result.h"

namespace weft::net {

// A key of a cluster, as handshakes and the registry use it.
class ClusterKey {
 public:
  explicit ClusterKey(const Secret& key);
  const Secret& psk() const { return psk_; }  // of handshakes (noise.h)
  const Bytes32& id() const { return id_; }   // names the key to other nodes; public
  std::string name() const;                   // 16 hex digits of the id, for people
  const KeyProofs& proofs() const { return proofs_; }

 private:
  Secret psk_;
  Bytes32 id_;
  KeyProofs proofs_;
};

// The accepted keys. Never changes; any thread.
class KeyRing {
 public:
  explicit KeyRing(const Secret& proving, const std::optional<Secret>& other = std::nullopt);
  const ClusterKey& proving() const { return keys_.front(); }    // the key that this node's hellos use
  const std::vector<ClusterKey>& keys() const { return keys_; }  // one or two; the proving one first
  const ClusterKey* find(const Bytes32& id) const;               // null: no such key is accepted
  // Returns the same keys, of which the one with this id proves. It is one of keys().
  KeyRing proving_by(const Bytes32& id) const;

 private:
  std::vector<ClusterKey> keys_;
};

using LiveKeys = Live<KeyRing>;  // of a running node

inline constexpr const char* kPreviousKeySuffix = ".previous";

// Reads FILE, and FILE.next and FILE.previous if they exist. Errors as read_cluster_key(). Errc::invalid also: these
// are three different keys.
Result<KeyRing> read_key_ring(const std::string& file);

}  // namespace weft::net

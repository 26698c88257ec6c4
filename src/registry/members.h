// The members of the cluster, the nodes that it knows, and this node's membership: a key under a lease that the node
// renews, and a record without a lease.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "registry/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

// The members according to the watch. Any thread.
class MemberList {
 public:
  void reset(const std::vector<std::pair<std::uint64_t, Member>>& members);  // each with its revision
  // Adds a member, or removes it if `member` is empty. Returns true if the list changes. An event older than the last
  // one of the node has no effect.
  bool set(std::uint64_t revision, const std::string& node, std::optional<Member> member);
  std::vector<Member> list() const;
  // As the two above, of the records of nodes.
  void reset_nodes(std::vector<KnownNode> nodes);
  void set_node(const std::string& node, std::optional<KnownNode> record);
  std::vector<KnownNode> nodes() const;  // members too whose record is not known yet

 private:
  struct Known {
    std::uint64_t revision = 0;
    std::optional<Member> member;  // empty: it has left
  };
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;      // guarded by mutex_
  std::map<std::string, KnownNode> nodes_;  // guarded by mutex_
};

// Renews the lease in the background, or takes a new one if it is lost. Calls `asked` each time with whether etcd
// answers.
class Membership {
 public:
  Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease,
             std::function<void(bool)> asked);
  ~Membership() { end(); }
  void begin(Member self);  // self.node must be set. A further call checks the lease at once. No effect after end()
  // Puts another proof in place of that of begin(), before it or after. Any thread.
  void set_key_proof(std::string proof);
  void end();  // leaves the cluster

 private:
  Result<Worker::Pause> round();
  Status renew(const Member& self);
  Status put(const Member& self, std::uint64_t lease);
  Status put_record(const Member& self);
  Member self() const;
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::seconds ttl_;
  const std::function<void(bool)> asked_;
  mutable std::mutex mutex_;
  Member self_;                           // guarded by mutex_; without a node before begin()
  std::optional<std::string> key_proof_;  // guarded by mutex_; of set_key_proof()
  // Used by the worker, and by end() after the worker:
  std::uint64_t lease_ = 0;  // 0: no lease
  Member put_;               // as it is in etcd under the lease
  KnownNode record_;         // as it is in etcd; without a node before the first put
  Worker worker_;
};

}  // namespace weft

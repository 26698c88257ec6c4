// The members of the cluster, the nodes that it knows, and this node's membership: a key under a lease that the node
// renews, and a record without a lease.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "registry/etcd/etcd_client.h"
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

// Renews the lease in the background, or takes a new one if it is lost, and puts the key again if it was deleted. Calls
// `asked` each time with whether etcd answers.
//
// A copy of the store has the same node, so the key tells them apart. If another process has put it, from a store at
// the same place, that process has ended: a store has one daemon. From any other place, this node waits until the lease
// of the other ends. If the other renews it, this node calls `refused`, once, and goes on asking.
class Membership {
 public:
  struct Calls {
    std::function<void(bool)> asked;
    std::function<void(const Error&)> refused;
  };
  Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease, Calls calls);
  ~Membership() { end(); }
  void begin(Member self);  // self.node must be set. A further call checks the lease at once. No effect after end()
  // Puts another proof in place of that of begin(), before it or after. Any thread.
  void set_key_proof(std::string proof);
  // Errc::exists: another weftd is this node. Waits until the deadline for the first answer of etcd since begin(), and
  // for the end of a lease that may be of a weftd that has ended.
  Status check_sole(std::chrono::steady_clock::time_point deadline) const;
  void end();  // leaves the cluster

 private:
  Result<Worker::Pause> round();
  Status renew(const Member& self);
  Result<std::uint64_t> look(const Member& self);
  Status put(const Member& self, std::uint64_t lease, std::uint64_t revision);
  Status put_record(const Member& self);
  void note_rival(const Member& other);
  Member self() const;
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::seconds ttl_;
  const Calls calls_;
  mutable std::mutex mutex_;
  mutable std::condition_variable looked_;
  Member self_;                           // guarded by mutex_; without a node before begin()
  std::optional<std::string> key_proof_;  // guarded by mutex_; of set_key_proof()
  bool has_looked_ = false;               // guarded by mutex_: etcd has said who this node is
  std::optional<Error> rival_error_;      // guarded by mutex_: another weftd is this node
  bool rival_renews_ = false;             // guarded by mutex_: that weftd runs
  // Used by the worker, and by end() after the worker:
  std::uint64_t lease_ = 0;  // 0: no lease
  Member put_;               // as it is in etcd under the lease
  KnownNode record_;         // as it is in etcd; without a node before the first put
  std::string rival_;        // process of the other weftd; "": none
  std::chrono::steady_clock::time_point rival_since_;
  bool has_refused_ = false;
  Worker worker_;
};

}  // namespace weft

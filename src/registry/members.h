// The members of the cluster, and this node's membership: a key under a lease that the node renews.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "registry/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/registry.h"
#include "weft/result.h"

namespace weft {

// The members according to the watch. Any thread.
class MemberList {
 public:
  void reset(const std::vector<std::pair<std::uint64_t, Member>>& members);  // each with its revision
  // Returns true if the list changes. An event older than the last one of the node has no effect.
  bool put(std::uint64_t revision, Member member);
  bool remove(std::uint64_t revision, const std::string& node);
  std::vector<Member> list() const;

 private:
  struct Known {
    std::uint64_t revision = 0;
    std::optional<Member> member;  // empty: it has left
  };
  bool set(std::uint64_t revision, const std::string& node, std::optional<Member> member);
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;  // guarded by mutex_
};

// A thread that renews the lease, or takes a new one if it is lost. It calls `asked` each time with whether etcd
// answers.
class Membership {
 public:
  Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease,
             std::function<void(bool)> asked);
  ~Membership() { end(); }
  void begin(Member self);  // self.node must be set. A further call checks the lease at once. No effect after end()
  void end();               // ends the thread and leaves the cluster

 private:
  void run();
  Status renew();
  bool sleep();  // false if the thread must end
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::seconds ttl_;
  const std::function<void(bool)> asked_;
  Member self_;
  std::uint64_t lease_ = 0;  // 0: none; only the thread uses this
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;   // guarded by mutex_
  bool hurried_ = false;  // guarded by mutex_
  std::thread thread_;    // guarded by mutex_, except in end()
};

}  // namespace weft

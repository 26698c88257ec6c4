// Who is in the cluster, and being one of them: a key under a lease that this node keeps alive.
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

// What the watch says of members. Any thread.
class MemberList {
 public:
  void reset(const std::vector<std::pair<std::uint64_t, Member>>& members);  // with the revision of each
  // Whether that changes anything: what is older than what is known does not.
  bool put(std::uint64_t revision, Member member);
  bool remove(std::uint64_t revision, const std::string& node);
  std::vector<Member> list() const;

 private:
  struct Known {
    std::uint64_t revision = 0;
    std::optional<Member> member;  // none: gone
  };
  bool set(std::uint64_t revision, const std::string& node, std::optional<Member> member);
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;  // guarded by mutex_
};

// A thread that renews the lease, or takes another where it is lost; `asked` is told each time whether etcd answers.
class Membership {
 public:
  Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease,
             std::function<void(bool)> asked);
  ~Membership() { end(); }
  void begin(Member self);  // `node` is set. Again: looks at once whether the lease still is. Nothing after end()
  void end();               // leaves the cluster

 private:
  void run();
  Status renew();
  bool sleep();  // false: it is time to end
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::seconds ttl_;
  const std::function<void(bool)> asked_;
  Member self_;
  std::uint64_t lease_ = 0;  // 0: none; of the thread
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;   // guarded by mutex_
  bool hurried_ = false;  // guarded by mutex_
  std::thread thread_;    // guarded by mutex_, but for its end
};

}  // namespace weft

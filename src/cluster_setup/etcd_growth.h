// Members that the etcd of a cluster gets from nodes that join, until it has as many as the cluster wants.
//
// A new member begins without a vote, so etcd has its quorum whatever becomes of the machine. The machine gives it the
// vote once it has caught up. etcd allows one member without a vote at a time: machines that join at once take turns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cluster_setup/node_plan.h"
#include "registry/etcd/etcd_client.h"
#include "weft/result.h"

namespace weft::setup {

struct NewMember {
  std::string name;
  std::string peer_url;
};

// LearnerAge measures how long a member of etcd has been without a vote. etcd has one such member at most. Any thread.
class LearnerAge {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LearnerAge(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}
  // Returns true if this process has known the member for longer than a join waits for its vote: its machine has died,
  // for a join that fails removes it.
  bool is_left_over(std::uint64_t member);

 private:
  const std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::uint64_t member_ = 0;  // guarded by mutex_
  Clock::time_point since_;   // guarded by mutex_
};

// Adds the member if etcd has fewer than `members_max`, and waits some seconds for others that are being added, or
// removes one that is left over. Returns all members as NAME=URL,…, for the settings of the new one. Returns "" if etcd
// has enough members, if another member has the name, or if etcd refuses: the machine then joins without an etcd.
std::string add_member(etcd::Client& client, const NewMember& member, std::uint64_t members_max, LearnerAge& learner);

// Waits until the member has caught up, and gives it its vote. `stopped` is polled. Errc::timed_out, Errc::cancelled.
Status promote_member(etcd::Client& client, const std::string& peer_url, std::chrono::milliseconds patience,
                      const std::function<bool()>& stopped);

// Returns `known` and the endpoints of all other members with a vote; `known` alone if etcd does not answer.
std::vector<std::string> member_endpoints(etcd::Client& client, std::vector<std::string> known);

// Returns the options of a client with the certificates of a node.
EtcdOptions member_options(const Places& places, const std::vector<std::string>& endpoints);

// Removes the member, and tries for some seconds. Fine if there is none with this URL.
Status remove_member(etcd::Client& client, const std::string& peer_url);

// A member that a join has added, until the join has ended well: else the destructor removes it, best effort.
class MemberTrial {
 public:
  // `options`: of the other members. `peer_url` "": the node is no member, and no call does anything.
  MemberTrial(EtcdOptions options, std::string peer_url);
  ~MemberTrial();
  MemberTrial(const MemberTrial&) = delete;
  MemberTrial& operator=(const MemberTrial&) = delete;

  Status promote(const std::function<bool()>& stopped);
  void keep() { peer_url_.clear(); }

 private:
  std::unique_ptr<etcd::Client> client_;
  std::string peer_url_;
};

}  // namespace weft::setup

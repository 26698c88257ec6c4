// Keeps a store a mirror of the registry. A worker receives the commits in etcd and applies them to the store in order,
// many changes in one commit. It resumes at the store's revision. If etcd has compacted the revisions after that, or
// its history is another one, the thread reads the whole registry and applies the differences. While etcd does not
// answer, the thread retries and the store keeps its last state.
//
// If the store has anything that the whole registry lacks, the registry has lost history. The mirror records that in
// etcd, which stops changes of names on all nodes, keeps what the store has, and finds it again after each start. A
// reconciliation begins a new generation of the registry: then the mirror of each node first brings back what the
// registry lacks, and follows it after that.
//
// A value that does not verify is skipped and reported; it never stops the others.
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
#include "registry/collections.h"
#include "registry/etcd/etcd_client.h"
#include "registry/etcd_restore.h"
#include "registry/members.h"
#include "registry/mirror_mark.h"
#include "registry/own_registry.h"
#include "registry/purges.h"
#include "registry/registry_compare.h"
#include "registry/registry_keys.h"
#include "registry/registry_list.h"
#include "registry/registry_records.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// The last error by which etcd refused a change of this node, as is_refused(). Any thread.
class LastRefusal {
 public:
  using Clock = std::chrono::steady_clock;
  void note(const Error& error) {  // no effect if the error is another one
    const std::lock_guard lock(mutex_);
    if (is_refused(error)) last_.emplace(Clock::now(), error);
  }
  std::optional<Error> since(Clock::time_point begun) const {
    const std::lock_guard lock(mutex_);
    return last_ && last_->first >= begun ? std::optional(last_->second) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::pair<Clock::time_point, Error>> last_;
};

class Mirror {
 public:
  using Clock = std::chrono::steady_clock;
  // The mirror's worker calls `agreed` after the store has joined the cluster, and at each reconnection. `changed` is
  // as in ClusterOptions. All parts must outlive the mirror.
  struct Parts {
    Store& store;
    RegistryMirror& mirror;
    etcd::Client& client;
    const RegistryKeys& keys;
    OwnRegistry& own;
    EtcdRestore& restore;
    Collections& collections;
    Purges& purges;
    std::string name;  // of this node, for messages
    std::function<void()> agreed;
    std::function<void()> changed;
  };
  explicit Mirror(Parts parts);
  ~Mirror() { end(); }
  void begin();  // call once
  void end();    // waits only for the worker
  // Any thread. `answers`: whether etcd answered a request. If it did not, or if another endpoint than the watch's did,
  // the mirror ends its session and reconnects.
  void hear(bool answers);

  // Waits until the store has everything up to `revision`. Errc::timed_out.
  Status wait_for(std::uint64_t revision, Clock::time_point deadline);
  void wait_until_tried(Clock::time_point deadline) const;  // waits for a try after the start or the last watch
  std::vector<Member> members() const { return members_.list(); }
  std::vector<KnownNode> nodes() const { return members_.nodes(); }
  void fill(RegistryStatus& status) const;
  // Returns the last error since `begun` by which etcd refused what this node has to write: for lack of space, or of
  // rights. Nothing if there was none.
  std::optional<Error> refusal_since(Clock::time_point begun) const { return refusal_.since(begun); }

 private:
  Result<Worker::Pause> round();
  Status session();  // from connecting to the first failure
  Status agree(etcd::Header& header);
  Status read_members();
  Status read_nodes();
  void read_collection();
  Result<bool> goes_on(std::uint64_t known, const etcd::Header& header);
  Status begin_anew();
  Status complete();
  Result<bool> settle(RegistryList& list);
  Status read_impossible();
  Status apply_list(RegistryList& list);
  void keep_mark(std::optional<MirrorMark> mark, std::uint64_t known);
  Status follow(std::uint64_t from);
  Status receive(etcd::WatchStream& watch);
  // Changes from one or more answers of the watch, committed together.
  struct Batch {
    std::vector<MirrorChange> changes;
    std::vector<std::uint64_t> revisions;  // revision of each change
    std::uint64_t revision = 0;
    std::optional<MirrorMark> mark;
    bool barrier = false;     // contains this node's barrier
    bool generation = false;  // the registry's state has changed
    bool members = false;     // members joined or left
    void add(MirrorChange change, std::uint64_t of) {
      changes.push_back(std::move(change));
      revisions.push_back(of);
    }
  };
  void read_event(const etcd::Event& event, Batch& batch);
  void read_member(const etcd::Event& event, const RegistryKey& key, Batch& batch);
  void read_node(const etcd::Event& event, const RegistryKey& key);
  Result<std::size_t> apply_all_but_last(const Batch& batch);
  Status apply(Batch& batch);
  Status apply(std::span<const MirrorChange> changes, std::uint64_t revision);
  void set_applied(std::uint64_t revision);
  Status aim();
  void aim_at(std::uint64_t revision);
  void suspect(std::string why);  // call with mutex_ held
  void set_connected(bool connected, const std::string& trouble);
  void set_generation(std::uint64_t generation);
  void set_lost(const std::string& lost);
  void refuse(const Error& error);

  const Parts parts_;
  MemberList members_;
  std::string node_;       // this node's id; only the worker uses this and the next eight
  bool joined_ = false;    // the store belongs to the cluster
  RegistryMeta meta_;      // of the registry that the session follows
  MirrorMark mark_;        // of the store's state
  bool whole_ = true;      // the registry has all that the store has
  Impossible impossible_;  // changes that the registry lacks in its generation
  // Purges that the registry has lost. The store forgets one if it takes over an undelete of the version, and the
  // reconciliation reports it.
  std::map<VersionKey, PurgedVersion> lost_purges_;
  MarkFile mark_file_;
  RetryPause retry_;

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  std::string suspicion_;      // guarded by mutex_: reason to end the session; empty: none
  bool tried_ = false;         // guarded by mutex_: a try to connect has ended since the last watch
  std::uint64_t applied_ = 0;  // guarded by mutex_
  // The store is complete once it has everything up to this revision. Guarded by mutex_.
  std::uint64_t complete_at_ = UINT64_MAX;
  RegistryStatus status_;               // guarded by mutex_
  LastRefusal refusal_;                 // by etcd
  etcd::WatchStream* watch_ = nullptr;  // guarded by mutex_: the running watch
  Worker worker_{"registry"};
};

}  // namespace weft

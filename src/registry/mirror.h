// Keeps a store the mirror of the registry: a thread that reads what is committed in etcd and takes it over, in order,
// many changes in one commit. It resumes where the store stands; where etcd has forgotten what came after that (a
// compaction) or was set back, also when it has come as far again by now, it reads the whole and takes over what
// differs. While etcd does not answer it tries
// again, and the store's last state stands.
//
// A value that does not verify is left out and told of; it never stops the rest.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "registry/etcd_client.h"
#include "registry/etcd_names.h"
#include "registry/members.h"
#include "registry/mirror_mark.h"
#include "registry/registry_keys.h"
#include "registry/registry_list.h"
#include "weft/cluster_store.h"
#include "weft/registry.h"
#include "weft/result.h"

namespace weft {

class Mirror {
 public:
  using Clock = std::chrono::steady_clock;
  // `agreed` is called when the store has become one of the cluster, and whenever the registry is followed again, from
  // the mirror's thread; `changed` as ClusterOptions. All outlive this.
  struct Parts {
    ClusterStore& store;
    etcd::Client& client;
    const RegistryKeys& keys;
    EtcdNames& names;
    std::function<void()> agreed;
    std::function<void()> changed;
  };
  explicit Mirror(Parts parts);
  ~Mirror() { end(); }
  void begin();  // once
  void end();    // waits for the thread, and for nobody else
  // Any thread: whether etcd answered a request. Where it does not, or another endpoint than that of the watch does,
  // the mirror looks, and begins again.
  void hear(bool answers);

  // Until the store has everything up to `revision`. Errc::timed_out.
  Status wait_for(std::uint64_t revision, Clock::time_point deadline);
  void wait_until_tried(Clock::time_point deadline) const;  // to connect, for the first time
  std::vector<Member> members() const { return members_.list(); }
  void fill(RegistryStatus& status) const;

 private:
  void run();
  Status session();  // from connecting to the first failure
  Status agree(etcd::Header& header);
  Status read_members();
  Result<bool> goes_on(std::uint64_t known, const etcd::Header& header);
  Status begin_anew();
  Result<std::uint64_t> read_list();  // the revision that it is of
  void keep_mark(std::optional<MirrorMark> mark, std::uint64_t known);
  Status raise(const RegistryList& list);
  Status follow(std::uint64_t from);
  Status receive(etcd::WatchStream& watch);
  // What one or more answers of the watch say, to be taken over as one.
  struct Batch {
    std::vector<MirrorChange> changes;
    std::vector<std::uint64_t> revisions;  // of each
    std::uint64_t revision = 0;
    std::optional<MirrorMark> mark;
    bool barrier = false;  // ours is among it
    bool members = false;  // some came or went
    void add(MirrorChange change, std::uint64_t of) {
      changes.push_back(std::move(change));
      revisions.push_back(of);
    }
  };
  void read_event(const etcd::Event& event, Batch& batch);
  void read_member(const etcd::Event& event, const RegistryKey& key, Batch& batch);
  Result<std::size_t> apply_all_but_last(const Batch& batch);
  Status apply(Batch& batch);
  Status apply(std::span<const MirrorChange> changes, std::uint64_t revision);
  void set_applied(std::uint64_t revision);
  void suspect(std::string why);  // mutex_ is held
  void set_connected(bool connected, const std::string& trouble);
  void refuse(const Error& error);
  bool pause(std::chrono::milliseconds time);  // false: it is time to end
  bool ending() const;

  const Parts parts_;
  MemberList members_;
  std::string node_;                // ours; of the thread
  bool joined_ = false;             // of the thread
  std::uint64_t etcd_ = 0;          // its own id; of the thread
  std::optional<MirrorMark> mark_;  // of the thread: that of the state that the store has
  MarkFile mark_file_;              // of the thread

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  bool ending_ = false;                 // guarded by mutex_
  std::string suspicion_;               // guarded by mutex_: why the session is to end; empty: it is not
  bool tried_ = false;                  // guarded by mutex_: since the last watch ended
  std::uint64_t applied_ = 0;           // guarded by mutex_
  RegistryStatus status_;               // guarded by mutex_
  etcd::WatchStream* watch_ = nullptr;  // guarded by mutex_: the one that runs
  std::thread thread_;
};

}  // namespace weft

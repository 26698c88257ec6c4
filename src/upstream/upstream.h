// Pulls revisions of a hub for requests that ask for them. Any number of requests for one revision cause one pull.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/limits.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/time_source.h"
#include "hub/hub_name.h"
#include "upstream/upstream_hub.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

// The progress of a revision on its way from the hub to the store.
struct UpstreamState {
  enum class What : unsigned char {
    asking,       // the hub has not answered yet
    pulling,      // the commit is known, and a pull of it runs or waits for its turn
    stored,       // the pull has ended: the store has the commit
    no_revision,  // the repository has no such revision
    failed,       // `error`; Errc::not_found: the hub has no such repository
  };
  What what = What::asking;
  std::shared_ptr<const UpstreamCommit> commit;  // for `pulling`, and without the files for `stored`
  Error error{};                                 // for `failed`
  // The pause before a client repeats its request; not for `stored`. For `pulling` the pause is the age of the pull: a
  // client that repeats a request five times still waits for a long pull.
  std::chrono::seconds again{0};
};

// Any thread. Each pull is a child of this process (upstream_hub.h).
class Upstream {
 public:
  struct Options {
    unsigned questions_max = 4;  // that wait for the hub at once
    unsigned pulls_max = 2;      // that run at once
    std::size_t begun_max = 64;  // revisions that are asked for or pulled at once; further ones fail with Errc::busy
    // Requests that wait at once. Further ones get the state as it is: a connection of the server that waits for the
    // upstream serves no other client.
    std::size_t waiting_max = limits::kHubClientsMax / 2;
    // The life of a final answer, after which the next request for the revision asks the hub again.
    std::chrono::seconds remembered{30};
    // The same of a stored revision that is no tag of the store, such as refs/pr/1: the store cannot name its commit.
    std::chrono::seconds nameless_remembered{600};
    std::size_t remembered_max = 4096;  // revisions
  };
  struct Counts {
    std::uint64_t begun = 0, failed = 0;  // pulls
    std::uint64_t running = 0;            // revisions that are asked for or pulled now
    std::uint64_t asked = 0;              // revisions that the hub was asked for
  };
  enum class Until : unsigned char { listed, stored };

  // `time` outlives this.
  Upstream(std::unique_ptr<UpstreamHub> hub, Options options, const TimeSource& time = steady_time());
  // end(), and waits for the pulls.
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // Begins to pull a revision, unless a pull of it or of its commit runs or has just ended. Then waits until its commit
  // is listed or stored, or the answer is final, at the latest until `deadline` or while `cancelled` returns false.
  // Does not wait if waiting_max others do. A name that the hub or the store cannot have is `failed` with
  // Errc::not_found, and the hub is not asked.
  UpstreamState obtain(const HubSource& source, Until until, Deadline deadline, const std::function<bool()>& cancelled);
  // Ends all pulls soon, without waiting for their ends, and begins no other ones.
  void end();
  Counts counts() const;

 private:
  struct Entry;
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;
  std::shared_ptr<Entry> begin(const HubSource& source) WEFT_EXCLUDES(mutex_);
  void forget() WEFT_REQUIRES(mutex_);
  UpstreamState state_of(const Entry& entry) const WEFT_REQUIRES(mutex_);
  void ask(const std::shared_ptr<Entry>& entry);
  void pull(const std::shared_ptr<Entry>& entry);
  void finish(Entry& entry, UpstreamState::What what, const Error& error) WEFT_REQUIRES(mutex_);

  const std::unique_ptr<UpstreamHub> hub_;
  const Options options_;
  const TimeSource& time_;
  mutable Mutex mutex_;
  Condition changed_;
  Entries entries_ WEFT_GUARDED_BY(mutex_);  // by repository and revision, and by repository and commit
  Counts counts_ WEFT_GUARDED_BY(mutex_);
  std::size_t waiting_ WEFT_GUARDED_BY(mutex_) = 0;  // requests
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  RareLines rare_;
  ThreadPool pulls_;      // a thread lives as long as the pool: a child ends with its thread
  ThreadPool questions_;  // ends before pulls_, to which it submits
};

}  // namespace weft

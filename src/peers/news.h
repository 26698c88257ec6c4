// Announces the versions that this node has as a whole to directory nodes, and asks them for other holders of the
// versions being read. A worker makes small calls, and sleeps while nothing is read and nothing has to be announced.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/time_source.h"
#include "base/worker.h"
#include "peers/directory.h"
#include "peers/links.h"
#include "peers/view.h"
#include "weft/cluster/exchange.h"
#include "weft/store/store.h"

namespace weft {

struct PeerNewsParts {
  Store& store;
  std::string self;  // this node's id
  PeerDirectory& directory;
  PeerView& view;
  PeerLinks& links;
  Exchange& exchange;
  const TimeSource& time = steady_time();  // of what is due; deadlines of calls are of the steady clock
};

// Any thread.
class PeerNews {
 public:
  // The parts outlive this. The destructor waits for a call in flight: a second at most.
  explicit PeerNews(PeerNewsParts parts);

  // Call when a version is read: asks for its holders. A version with all blobs in the index is announced once no more
  // chunks arrive, even if none has arrived.
  void expect(const Digest& manifest);
  // Call when chunks of the version have arrived.
  void arrived(const Digest& manifest);
  // Call after an eviction: surveys all versions again, and withdraws announcements that no longer hold.
  void survey_again();
  // Asks all directory nodes of a manifest for its holders, because one directory may have restarted, or lie.
  void ask(const Digest& manifest, Deadline deadline);
  // Returns the directory nodes of a manifest, the preferred one first. Leaves out the publisher if there are others,
  // because its answers would wait behind its uploads.
  std::vector<std::string> directories(const Digest& manifest) const;

 private:
  using Clock = std::chrono::steady_clock;
  // A version that is whole, or may soon be.
  struct Version {
    Clock::time_point changed{};  // when a chunk arrived, or a reader expected it; zero: in an earlier run
    Clock::time_point survey_at{};
    Clock::time_point say_at = Clock::time_point::max();  // max: nothing to announce
    bool whole = false;                                   // as last surveyed
    bool told = false;                                    // announced as whole
    bool is_over(Clock::time_point now) const;
  };

  Worker::Pause round() WEFT_EXCLUDES(mutex_);
  Worker::Pause pause() WEFT_EXCLUDES(mutex_);
  void touch(const Digest& manifest) WEFT_REQUIRES(mutex_);
  void wake() WEFT_REQUIRES(mutex_);
  void drop_one() WEFT_REQUIRES(mutex_);
  void recall() WEFT_EXCLUDES(mutex_);
  Result<std::vector<Digest>> manifests_of_others() const;
  std::vector<Digest> due(Clock::time_point Version::*at) WEFT_EXCLUDES(mutex_);
  void survey(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  void tell(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  bool tell(const std::string& node, const Announce& news) WEFT_EXCLUDES(mutex_);
  bool is_active() const WEFT_EXCLUDES(mutex_);
  std::optional<std::vector<std::string>> holders(const std::string& node, const Digest& manifest, Deadline deadline);
  void ask_some(const Digest& manifest);
  std::optional<std::vector<std::byte>> call(const std::string& node, const PeerRequest& request, Deadline deadline)
      WEFT_EXCLUDES(mutex_);

  const PeerNewsParts parts_;
  mutable Mutex mutex_;
  std::map<Digest, Version> versions_ WEFT_GUARDED_BY(mutex_);
  Clock::time_point active_ WEFT_GUARDED_BY(mutex_){};  // when a chunk last arrived or was expected
  std::map<std::string, Clock::time_point> silent_ WEFT_GUARDED_BY(mutex_);  // nodes left alone, and until when
  bool sleeps_ WEFT_GUARDED_BY(mutex_) = false;                              // the worker must be woken
  bool recalled_ = false;                                                    // used only by the worker
  Worker worker_{"news for peers", Worker::kNoRetry, parts_.time};
};

}  // namespace weft

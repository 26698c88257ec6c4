// Takes what this node publishes to the origin, in the background, in the daemon, and what it hears of names: versions,
// tags and removals of all nodes, so that no record is lost with the node that made it. What is still to be done is
// what the store calls unsaved, and not told: it outlives the process. The store knows which origin that is about, the
// first that was met: what is at another does not count.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

struct WriteBehindStatus {
  std::uint64_t waiting = 0;        // versions
  std::string active;               // "model@1"; "" while nothing moves
  std::uint64_t bytes_written = 0;  // since the start
  std::uint64_t versions_saved = 0;
  std::uint64_t records_written = 0;  // of what was said
  std::string problem;                // why the last try failed; "" when it did not
};

// Any thread.
class WriteBehind {
 public:
  // `store` outlives this. The directory need not answer, or be there: it is tried again and again.
  WriteBehind(ClusterStore& store, std::string origin_path);
  // Takes some seconds at most: a thread that hangs in the origin's file system is left behind, without the store.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  void look_again();  // something was published, tagged or removed; without it, it is seen within half a minute
  // Until all that is unsaved now and all that was said, or this version, is at the origin. Errc::cancelled.
  // Errc::changed: another origin is there than the one that the store knows, or none. Errc::absent: a version lacks
  // bytes, and nobody is known that would bring them; the others are there.
  Status wait(const std::function<bool()>& cancelled);
  Status wait_for(VersionId version, const std::function<bool()>& cancelled);
  // Takes what is in the directory now for the origin from now on, made where there is none: all that this node
  // published and heard goes there. Errc::cancelled.
  Status take_new_origin(const std::function<bool()>& cancelled);
  WriteBehindStatus status() const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace weft

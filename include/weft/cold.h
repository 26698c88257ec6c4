// Bytes that this node's store knows and has not (weft/cluster_store.h), and who brings them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/run.h"
#include "weft/store_rows.h"

namespace weft {

// How a file is read whose bytes are not all here.
enum class ColdPolicy : std::uint8_t {
  automatic,  // as `fetch` where that takes no longer than streaming would: small files, and fast sources (fetch_pays)
  stream,     // each read brings what it reads, and a little ahead of readers who go on
  fetch,      // the first open brings all of it; then it is read as a native file
};

std::string_view name_of(ColdPolicy policy);  // "auto", "stream", "fetch"
std::optional<ColdPolicy> cold_policy_named(std::string_view name);

// What who brings bytes knows of how they are best read.
struct ColdAdvice {
  ColdPolicy policy = ColdPolicy::automatic;  // of the node
  std::uint64_t bytes_per_s = 0;              // at which bytes came lately; 0: not known
};
// Whether one who opens a file waits for so many bytes that are not here, where they come at such a rate.
bool fetch_pays(std::uint64_t absent_bytes, std::uint64_t bytes_per_s);

// What to bring: a range of a published file. With `ahead`, so many bytes behind it are begun with, not waited for. Who
// wants all of these says so: then they come in any order, such as suits nodes that begin with one file at once.
struct ColdRange {
  VersionId version = 0;
  std::uint32_t file = 0;  // number in its manifest
  Range range;
  std::uint64_t ahead = 0;
  bool all = false;
};

// For its life, calls of ColdReads on this thread ask now and then while they wait whether anybody still wants their
// answer. If not, they end with Errc::cancelled. One at a time on a thread.
class ColdWait {
 public:
  explicit ColdWait(std::function<bool()> is_wanted) : is_wanted_(std::move(is_wanted)) { current_ = this; }
  ~ColdWait() { current_ = nullptr; }
  ColdWait(const ColdWait&) = delete;
  ColdWait& operator=(const ColdWait&) = delete;
  static bool is_wanted() { return current_ == nullptr || current_->is_wanted_(); }

 private:
  static inline thread_local const ColdWait* current_ = nullptr;
  const std::function<bool()> is_wanted_;
};

// Any thread. A call waits while its bytes can come, however long that takes, and ends after a silence
// (weft/deadline.h): Errc::timed_out; Errc::unreachable when there is nobody to ask; Errc::not_found when nobody has
// it, Errc::corrupt when nobody has it whole, Errc::no_space.
class ColdReads {
 public:
  virtual ~ColdReads() = default;
  // Gives a bare version its content; fine when it has it.
  virtual Status look(VersionId version) = 0;
  // Returns where the range lies, verified: runs of the published file that touch and cover it, in order. They may
  // begin before it and go on behind it. Two callers who want one byte cause one transfer of it.
  virtual Result<std::vector<Run>> bring(const ColdRange& what) = 0;
  // What bring() does, begun: who will want it soon has something else to do before. Dropped, it is wanted no longer.
  class Begun {
   public:
    virtual ~Begun() = default;
    virtual Result<std::vector<Run>> take() = 0;  // once; waits
  };
  // Does not wait for it. Null where that cannot be done, or not now: bring() is for it then.
  virtual std::unique_ptr<Begun> begin(const ColdRange& /*what*/) { return nullptr; }
  virtual void trim() {}  // what came and is not wanted any more goes; to be called every few seconds
  // May be some seconds old.
  virtual ColdAdvice advice() { return {}; }
  // `alive` is called now and then by threads that wait, while there is life in whoever brings the bytes; empty:
  // nothing is.
  virtual void on_wait(std::function<void()> /*alive*/) {}
};

// The cost of fetching a version, or some of its layers, before a reader asks for it.
struct FetchReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;        // that were asked for
  std::uint64_t moved_bytes = 0;  // of these, those that were not here
};

// Asks the daemon that serves the store at `store_path`. While a daemon that was there is away, calls wait some seconds
// for it; then they fail at once until it is back. `expected`: the first one is waited for too.
std::unique_ptr<ColdReads> make_cold_client(const std::string& store_path, bool expected);

}  // namespace weft

// Access to the manifests and bytes of versions that are not on this node (daemon_api/cold_client.cc; in the daemon
// fetch/fetcher.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/bytes/pack.h"
#include "weft/bytes/run.h"
#include "weft/bytes/traffic.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// How to read a file with absent bytes.
enum class ColdPolicy : std::uint8_t {
  // As `fetch` if that takes no longer than streaming: for small files and fast sources (fetch_pays). Else as `stream`,
  // but a page fault of a mapping waits kFaultWaitMax for a source.
  automatic,
  stream,  // each read fetches its bytes, and reads ahead a little for sequential readers
  fetch,   // the first open fetches all bytes; then the file is read like a native one
};

std::string_view name_of(ColdPolicy policy);  // "auto", "stream", "fetch"
std::optional<ColdPolicy> cold_policy_named(std::string_view name);

// A program that maps a file cannot handle an error, so with ColdPolicy::automatic a page fault whose bytes have no
// source waits for this time. A source that returns ends the wait.
inline constexpr std::chrono::seconds kFaultWaitMax{120};

// The daemon's advice on how to read remote bytes.
struct ColdAdvice {
  ColdPolicy policy = ColdPolicy::automatic;  // configured on the node
  std::uint64_t bytes_per_s = 0;              // recent rate of remote bytes; 0: not known
  std::uint64_t keeps = UINT64_MAX;           // bytes of one file that the node has space to keep, at most
};
// True if an open should wait for so many absent bytes, which arrive at this rate.
bool fetch_pays(std::uint64_t absent_bytes, std::uint64_t bytes_per_s);

// The longest range whose bytes may pass to a reader without being kept. A waiting request keeps them in the daemon's
// memory.
inline constexpr std::uint64_t kPassMax = 4U << 20U;

// A range of a published file to fetch. Also starts to fetch `ahead` bytes after it, without waiting. `all`: the reader
// wants all these bytes, so they may come in any order, which suits nodes that start with one file at once. They are
// then kept, or the request fails with Errc::no_space. The same goes for a range longer than kPassMax. Other bytes that
// the node has no space for pass to the reader. `one_tensor`: the range is of one small tensor that is read alone, so
// the read begins no swarm (weft/bytes/swarm.h). It uses a swarm that the node is in.
struct ColdRange {
  VersionId version = 0;
  std::uint32_t file = 0;  // index in its manifest
  Range range;
  std::uint64_t ahead = 0;
  bool all = false;
  bool one_tensor = false;
  // The class of traffic of bytes that no reader waits for: those of an `all` request, and those read ahead. A mount
  // cannot choose it.
  Traffic background = Traffic::ahead;
};

// While it lives, calls of ColdReads on this thread poll `is_wanted` during waits. If it returns false, they end with
// Errc::cancelled. `is_fault`: true while the reader waits in a page fault of a mapping, where an error is a SIGBUS.
// One at a time per thread.
class ColdWait {
 public:
  explicit ColdWait(std::function<bool()> is_wanted, std::function<bool()> is_fault = {})
      : is_wanted_(std::move(is_wanted)), is_fault_(std::move(is_fault)) {
    current_ = this;
  }
  ~ColdWait() { current_ = nullptr; }
  ColdWait(const ColdWait&) = delete;
  ColdWait& operator=(const ColdWait&) = delete;
  static bool is_wanted() { return current_ == nullptr || current_->is_wanted_(); }
  static bool is_fault() { return current_ != nullptr && current_->is_fault_ && current_->is_fault_(); }

 private:
  static inline thread_local const ColdWait* current_ = nullptr;
  const std::function<bool()> is_wanted_;
  const std::function<bool()> is_fault_;
};

// Fetches the manifests of bare versions (Snapshot::is_bare). Any thread. Readers of manifests call it, never the
// store.
class ManifestResolver {
 public:
  virtual ~ManifestResolver() = default;
  // Gives a bare version its content. Any other version stays as it is. Errc::absent: no node can give the manifest
  // now. Not while this thread holds a Snapshot.
  virtual Status resolve(VersionId version) = 0;
};
// Returns a resolver without a source, for readers of local manifests (blobs/load.cc). It answers Errc::absent.
ManifestResolver& no_resolver();

// Fetches absent bytes and manifests. Any thread. A call waits as long as its bytes can arrive, and ends after a
// silence (weft/deadline.h) with Errc::timed_out. Errc::unreachable: there is no source. Errc::not_found: no source has
// the bytes. Errc::corrupt: no source has them undamaged. Errc::no_space.
class ColdReads : public ManifestResolver {
 public:
  // Fetches a range. Returns verified runs of the published file that cover it, adjacent and in order. They may extend
  // beyond the range. If two callers want one byte, it is transferred once. Runs in a pack with the id kPassingPack are
  // not kept: read them at once.
  virtual Result<std::vector<Run>> bring(const ColdRange& what) = 0;
  // A bring() in flight, for a caller that has other work first. Destroyed, it is cancelled.
  class Begun {
   public:
    virtual ~Begun() = default;
    virtual Result<std::vector<Run>> take() = 0;  // call once; waits
  };
  // Starts a bring() without waiting. nullptr if the source cannot start one now: call bring() then.
  virtual std::unique_ptr<Begun> begin(const ColdRange& /*what*/) { return nullptr; }
  virtual void trim() {}  // drops state of finished fetches; call every few seconds
  // Returns the daemon's advice, which may be some seconds old.
  virtual ColdAdvice advice() { return {}; }
  // Sets a function that waiting threads call from time to time while the daemon shows signs of life. Empty: none.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an implementation keeps the function
  virtual void on_wait(std::function<void()> /*alive*/) {}
};

// Report of a fetch of a version, or of some of its layers, ahead of readers.
struct FetchReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;        // requested bytes
  std::uint64_t moved_bytes = 0;  // of these, bytes that were not local
  std::string held_by = {};       // the setting whose rate held it back for most of the time; "": none did
};

// Makes a client of the daemon that serves the store at `store_path`. If the daemon goes away, calls wait some seconds
// for it. Later calls fail at once until it is back. `expected`: calls also wait for the first daemon.
std::unique_ptr<ColdReads> make_cold_client(const std::string& store_path, bool expected);

}  // namespace weft

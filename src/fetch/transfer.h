// A pack that is being filled with blobs of one version: those of one published file, or of a group of small ones.
// Tracks which units have arrived, and which blobs are complete. It has no thread and no lock: its owner guards it,
// except for members that say otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fetch/plan.h"
#include "fetch/verified_source.h"
#include "fetch/version_bases.h"
#include "weft/bytes/pack.h"
#include "weft/bytes/traffic.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

// The number of transfers that a Fetcher keeps open, each with three descriptors, unless readers use more at the same
// time.
inline constexpr std::size_t kOpenTransfersMax = 40;

// passed: the bytes went to their readers and were not kept. in_swarm: a swarm is to bring the unit (swarm_fetch.h), so
// that it is in no queue. held: it is in no queue and no swarm before its blob is compared with the base
// (fetch_queue.h).
enum class UnitState : std::uint8_t { idle, queued, running, here, failed, passed, in_swarm, held };

// The comparison of a blob with its base: once, after the first chunk of the blob has arrived with the digests of all
// chunks. Before, one unit of the blob is requested.
struct BlobComparison {
  bool is_due = false;        // the blob has a base, and waits for its comparison
  std::size_t requested = 0;  // units of the blob that run or are in a swarm
  std::size_t queued = 0;     // units of the blob
  bool is_awaited() const { return is_due && requested > 0; }
  // True if a unit that is wanted ahead of readers now is to be held.
  bool holds_others() const { return is_due && requested + queued > 0; }
};

class Transfer {
 public:
  using Clock = std::chrono::steady_clock;
  // Constant once the transfer is shared; any thread.
  const std::uint64_t log_id;  // unique among the transfers of this process
  const VersionId version;
  const std::optional<std::uint32_t> file;  // the file whose layout the pack has; none: a group
  const Digest manifest;
  const FetchPlan plan;
  const std::unique_ptr<FetchPack> pack;
  const std::shared_ptr<const PackReader> reader;  // of the pack, which it keeps in place
  std::shared_ptr<VersionBases> bases;             // set before the transfer is shared; null: its bytes come plain
  std::string publisher;                           // set before it is shared, as the next two
  std::string subject;                             // "bert@1: model.safetensors", for messages
  Clock::time_point young_until{};  // the publisher's index may lack bytes until then; past if it was away
  bool may_swarm = false;           // a swarm may bring its units

  // Fails if the pack cannot be opened for readers.
  static Result<std::shared_ptr<Transfer>> make(VersionId version, std::optional<std::uint32_t> file,
                                                const Digest& manifest, FetchPlan plan, std::unique_ptr<FetchPack> pack,
                                                VersionHold hold);

  UnitState state(std::size_t unit) const { return units_[unit].state; }
  const Error& failure(std::size_t unit) const { return units_[unit].failure; }
  // `as`: queued, in_swarm, held, or idle if the unit came by a swarm that was left, and nobody waits for it.
  void queue(std::size_t unit, UnitState as = UnitState::queued) { set(unit, as); }
  void begin(std::size_t unit);
  void fail(std::size_t unit, Error error);
  void pass(std::size_t unit);
  void put_back(std::size_t unit, bool late = false);  // queues a running unit again; `late`: after a silence
  bool was_put_back(std::size_t unit) const { return units_[unit].late; }
  // Records that a reader begins to wait for the unit, if it is queued or running for others already.
  void join(std::size_t unit);
  // A silence of the unit's sources counts from then: the last unit arrived, or the last reader joined this unit.
  Clock::time_point silent_from(std::size_t unit) const { return std::max(arrived_, units_[unit].joined); }
  // Delays the next request of this transfer, until asked_from(). The delay doubles with each call.
  void ask_later();
  Clock::time_point asked_from() const { return asked_from_; }
  // Call for each unit if a request for several units of a group failed, because one of them may be lost everywhere.
  // Each unit then gets a request of its own.
  void part(std::size_t unit);
  bool is_alone(std::size_t unit) const { return units_[unit].alone; }
  void expect_comparisons();  // of all blobs with a base; call it before this is shared
  const BlobComparison& comparison(std::size_t unit) const { return blobs_[plan.units[unit].blob].comparison; }
  std::size_t held() const { return held_; }  // units
  // Ends the comparison of a blob. `expected`: the digests of all its chunks; empty if unknown.
  void compared(std::size_t blob, std::vector<Digest> expected);
  // Returns the expected digest of a unit. The blob must be compared, and have missing units.
  const Digest& expected(std::size_t unit) const;
  // True if the unit equals the base at the same offset of the blob, and is copied from there. Set it for no running
  // unit.
  bool is_same(std::size_t unit) const { return units_[unit].same; }
  void set_same(std::size_t unit, bool same) { units_[unit].same = same; }
  // Records that the bytes of a unit, which have this digest, are in the pack's file.
  void arrive(std::size_t unit, const Digest& digest);

  Clock::time_point moved() const { return moved_; }      // when a unit last arrived, or this was made
  Clock::time_point arrived() const { return arrived_; }  // when a unit last arrived; zero: none has
  void use() { used_ = Clock::now(); }
  Clock::time_point used() const { return used_; }
  // The unit that is to arrive first; nothing if some unit has arrived, or none is running.
  std::optional<std::size_t> begins() const {
    return busy_ > 0 && arrived_ == Clock::time_point{} ? std::optional(begun_) : std::nullopt;
  }
  std::uint64_t busy_bytes() const { return busy_bytes_; }
  bool complete() const { return missing_ == 0; }  // every unit has arrived

  // Records that a reader asks for this file of the group. Returns how often the requested file has changed.
  std::uint64_t note_file(std::uint32_t number) {
    if (last_file_ != number) ++files_asked_;
    last_file_ = number;
    return files_asked_;
  }
  bool was_asked(std::size_t unit) const { return units_[unit].asked; }
  // Marks the unit as requested by a reader. Returns true if it was marked before.
  bool ask(std::size_t unit) { return std::exchange(units_[unit].asked, true); }

  // Complete blobs that are not in the index yet.
  std::uint64_t whole_bytes() const { return whole_bytes_; }
  std::vector<FetchedBlob> take_whole();

  void let_go() { used_ = {}; }    // allows the Fetcher to drop it at once
  void hurry() { hurry_ = true; }  // asks for its complete blobs to be indexed now
  bool hurries() const { return hurry_; }
  Mutex writing;                     // held for a write to the pack's file, because waiters on the kernel's lock spin
  bool adding = false;               // some of its blobs are being indexed
  bool is_read = false;              // a reader has asked for bytes of it
  std::set<std::size_t> waited_for;  // units: readers wait for them
  Traffic background = Traffic::ahead;  // the class of its units that no reader waits for; FetchQueue::set_class()
  bool is_straight = false;             // the last request was for one small tensor: what it wants begins no swarm
  Status indexed;                       // the result of the last indexing

 private:
  void set(std::size_t unit, UnitState state);
  struct Unit {
    UnitState state = UnitState::idle;
    Error failure;
    bool late = false;
    Clock::time_point joined{};
    bool asked = false;
    bool alone = false;
    bool same = false;
  };
  struct Blob {
    std::vector<Digest> chunks;  // digests: of arrived chunks; after the comparison, of all
    std::uint64_t missing = 0;   // chunks
    BlobComparison comparison;
  };
  Transfer(VersionId of, std::optional<std::uint32_t> of_file, const Digest& named, FetchPlan planned,
           std::unique_ptr<FetchPack> into, std::shared_ptr<const PackReader> readers, VersionHold hold);
  std::optional<std::uint32_t> last_file_;
  std::uint64_t files_asked_ = 0;
  const VersionHold hold_;  // keeps the version from gc during the transfer
  std::vector<Unit> units_;
  std::vector<Blob> blobs_;
  std::vector<FetchedBlob> whole_;
  std::uint64_t whole_bytes_ = 0;
  std::size_t missing_ = 0;
  std::size_t busy_ = 0;
  std::size_t held_ = 0;
  std::uint64_t busy_bytes_ = 0;
  bool hurry_ = false;
  Clock::time_point asked_from_{};
  Clock::duration pause_{};
  std::size_t begun_ = 0;  // the unit that ran when the number of running units last rose from 0
  Clock::time_point moved_ = Clock::now();
  Clock::time_point arrived_{};
  Clock::time_point used_ = Clock::now();
};

}  // namespace weft

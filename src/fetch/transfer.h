// A pack that is being filled with blobs of one version, each at its place: one published file, or a group of small
// ones. Knows which of its units are here and which blobs are whole. It has no thread and no lock: its owner guards it,
// except for the members that say otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fetch/plan.h"
#include "fetch/verified_source.h"
#include "fetch/version_bases.h"
#include "weft/cluster_store.h"
#include "weft/content.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Transfers that a Fetcher keeps open, each with three descriptors, unless readers need more of them at one time.
inline constexpr std::size_t kOpenTransfersMax = 40;

enum class UnitState : std::uint8_t { idle, queued, running, here, failed };

class Transfer {
 public:
  using Clock = std::chrono::steady_clock;
  // What does not change; any thread.
  const VersionId version;
  const std::optional<std::uint32_t> file;  // that the pack is laid out as; none: a group's blobs
  const Digest manifest;
  const FetchPlan plan;
  const std::unique_ptr<FetchPack> pack;
  const std::shared_ptr<const PackReader> reader;  // of the pack; keeps it in place
  std::shared_ptr<VersionBases> bases;             // set before the transfer is shared; null: its bytes come plain
  std::string publisher;                           // set before it is shared, as the next two
  std::string subject;                             // "bert@1: model.safetensors", for messages
  Clock::time_point young_until{};                 // the publisher's index may lack its bytes, and soon have them

  // Errc as of opening the pack for readers.
  static Result<std::shared_ptr<Transfer>> make(VersionId version, std::optional<std::uint32_t> file,
                                                const Digest& manifest, FetchPlan plan, std::unique_ptr<FetchPack> pack,
                                                VersionHold hold);

  UnitState state(std::size_t unit) const { return units_[unit].state; }
  const Error& failure(std::size_t unit) const { return units_[unit].failure; }
  void queue(std::size_t unit) { units_[unit].state = UnitState::queued; }
  void begin(std::size_t unit);
  void fail(std::size_t unit, Error error);
  void put_back(std::size_t unit, bool late = false);  // it did not come, and is queued again; `late`: after a silence
  bool was_put_back(std::size_t unit) const { return units_[unit].late; }
  // Nothing is asked for before that, which is a while from now on, and a longer one each time.
  void ask_later();
  Clock::time_point asked_from() const { return asked_from_; }
  // A request for several units of a group failed, as the bytes of one of them may be nowhere. Each comes with a
  // request of its own from now on.
  void part(std::size_t unit);
  bool is_alone(std::size_t unit) const { return units_[unit].alone; }
  // A blob with a base is compared with it once, when the first of its chunks has come with the digests of all. Until
  // then `is_uncompared`, and only one of its units is asked for.
  void expect_comparison(std::size_t blob) { blobs_[blob].uncompared = true; }
  bool is_uncompared(std::size_t unit) const { return blobs_[plan.units[unit].blob].uncompared; }
  bool awaits_comparison(std::size_t unit) const {
    return is_uncompared(unit) && blobs_[plan.units[unit].blob].busy > 0;
  }
  // The digests that its chunks are to have; none: they are not known, or there is nothing to compare them with.
  void compared(std::size_t blob, std::vector<Digest> expected);
  // Those of this unit's chunks, of a blob that was compared, until the unit is here.
  std::vector<Digest> expected(std::size_t unit) const;
  // The unit is to be copied from the base, which has all of it at the same place of the blob. No unit that runs.
  bool is_same(std::size_t unit) const { return units_[unit].same; }
  void set_same(std::size_t unit, bool same) { units_[unit].same = same; }
  // Its bytes are in the pack's file. `digests` are of its chunks.
  void arrive(std::size_t unit, std::span<const Digest> digests);

  Clock::time_point moved() const { return moved_; }      // when a unit last came, or this was made
  Clock::time_point arrived() const { return arrived_; }  // the last of its units; long ago when none has
  void use() { used_ = Clock::now(); }
  Clock::time_point used() const { return used_; }
  bool busy() const { return busy_ > 0; }  // units that run
  bool begins() const { return busy_ > 0 && arrived_ == Clock::time_point{}; }
  std::uint64_t busy_bytes() const { return busy_bytes_; }
  bool complete() const { return missing_ == 0; }  // every unit is here

  // A reader asks for this file of the group. Returns how many times readers asked for another file than before.
  std::uint64_t note_file(std::uint32_t number) {
    if (last_file_ != number) ++files_asked_;
    last_file_ = number;
    return files_asked_;
  }
  bool was_asked(std::size_t unit) const { return units_[unit].asked; }
  // Somebody asks for it; whether somebody did before.
  bool ask(std::size_t unit) { return std::exchange(units_[unit].asked, true); }

  // Blobs that are whole and not in the index yet.
  std::uint64_t whole_bytes() const { return whole_bytes_; }
  std::vector<FetchedBlob> take_whole();

  void let_go() { used_ = {}; }    // it may be dropped at once
  void hurry() { hurry_ = true; }  // what is whole is to be put into the index now
  bool hurries() const { return hurry_; }
  std::mutex writing;  // to the pack's file: its own lock is waited for spinning
  // Other nodes fetch it too, as was seen a moment ago.
  bool is_shared() const { return shared_until > Clock::now(); }
  Clock::time_point shared_until{};
  std::optional<std::size_t> follows;  // the unit behind those that were asked for in order from the first on
  bool adding = false;                 // some of its blobs are just being put there
  Status settled;                      // how that last went

 private:
  void end(std::size_t unit);
  struct Unit {
    UnitState state = UnitState::idle;
    Error failure;
    bool late = false;
    bool asked = false;
    bool alone = false;
    bool same = false;
  };
  struct Blob {
    std::vector<Digest> chunks;  // that have come; once the blob was compared, that all are to have
    std::uint64_t missing = 0;   // chunks
    std::size_t busy = 0;        // units that run
    bool uncompared = false;
  };
  Transfer(VersionId of, std::optional<std::uint32_t> number, const Digest& named, FetchPlan planned,
           std::unique_ptr<FetchPack> into, std::shared_ptr<const PackReader> readers, VersionHold hold);
  std::optional<std::uint32_t> last_file_;
  std::uint64_t files_asked_ = 0;
  const VersionHold hold_;  // while its bytes come, gc leaves the version whole
  std::vector<Unit> units_;
  std::vector<Blob> blobs_;
  std::vector<FetchedBlob> whole_;
  std::uint64_t whole_bytes_ = 0;
  std::size_t missing_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t busy_bytes_ = 0;
  bool hurry_ = false;
  Clock::time_point asked_from_{};
  Clock::duration pause_{};
  Clock::time_point moved_ = Clock::now();
  Clock::time_point arrived_{};
  Clock::time_point used_ = Clock::now();
};

}  // namespace weft

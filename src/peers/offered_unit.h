// A unit of a swarm that another node has offered, with the answer that opens its bytes. The swarms (peers/swarm) make
// it, and PeerSource reads it. The answer of a unit that a clerk has named opens no bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "weft/bytes/swarm.h"
#include "weft/cluster/exchange.h"

namespace weft {

// The place of an offered unit: the bytes of all its runs, one after the other.
struct OfferPlace {
  std::string node;                // that offered the unit
  std::shared_ptr<Answer> answer;  // null after close()
  // The first bytes of the unit, valid while `answer` lives; empty after close(). The windows hold the rest.
  std::span<const std::byte> head;
  // The answer has a token in place of the bytes (Want::names), which the node gives to an AskBytes.
  bool has_token = false;
};

// The giver of a unit's bytes. A partner fetches the version too, and a source has the whole version. A unit that a
// clerk has named is read at the origin.
enum class UnitGiver : std::uint8_t { partner, source, origin };

// Units by their giver.
struct ReceivedUnits {
  std::uint64_t from_partners = 0, from_source = 0, from_origin = 0;
  std::uint64_t all() const { return from_partners + from_source + from_origin; }
  void add(UnitGiver giver) {
    ++(giver == UnitGiver::partner ? from_partners : giver == UnitGiver::source ? from_source : from_origin);
  }
};

// Set once its sender turned out to be too slow. The swarm shares it with the offer.
using GivenUp = std::shared_ptr<std::atomic<bool>>;

// Any thread. Its answer is dropped before its exchange: by close(), or with the offer.
class PeerOffer final : public OfferedUnit {
 public:
  // Hears how offers end. On the thread that calls the offer, and under no lock.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void ended(const PeerOffer& offer, bool arrived) = 0;  // once for each offer
    virtual void refuted(const PeerOffer& offer) = 0;
  };

  PeerOffer(std::weak_ptr<Owner> owner, const Digest& manifest, std::uint32_t unit, std::vector<ChunkRun> runs,
            OfferPlace place, UnitGiver giver = UnitGiver::partner, GivenUp given_up = {})
      : owner_(std::move(owner)),
        manifest_(manifest),
        unit_(unit),
        runs_(std::move(runs)),
        giver_(giver),
        given_up_(std::move(given_up)),
        place_(std::move(place)) {}
  ~PeerOffer() override { end(false); }
  PeerOffer(const PeerOffer&) = delete;
  PeerOffer& operator=(const PeerOffer&) = delete;

  const Digest& manifest() const override { return manifest_; }
  std::span<const ChunkRun> runs() const override { return runs_; }
  bool by_name() const override { return giver_ == UnitGiver::origin; }
  bool is_wanted() const override { return !given_up_ || !*given_up_; }
  void arrived() override { end(true); }

  std::uint32_t unit() const { return unit_; }
  UnitGiver giver() const { return giver_; }
  std::string node() const { return place().node; }
  bool has_token() const { return place().has_token; }
  OfferPlace place() const {
    const MutexLock lock(mutex_);
    return place_;
  }
  // All bytes are read: drops the answer, so that the node may send another unit. Readers keep their copy of it.
  void close() {
    std::shared_ptr<Answer> closed;  // is dropped without the lock, because its end sends a message
    const MutexLock lock(mutex_);
    closed.swap(place_.answer);
    place_.head = {};
  }
  // A chunk that the node gave is wrong: the node is asked for no other unit of this version.
  void refuted() override {
    if (const auto owner = owner_.lock()) owner->refuted(*this);
  }

 private:
  void end(bool arrived) {
    close();
    {
      const MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    if (const auto owner = owner_.lock()) owner->ended(*this, arrived);
  }

  const std::weak_ptr<Owner> owner_;
  const Digest manifest_;
  const std::uint32_t unit_;
  const std::vector<ChunkRun> runs_;
  const UnitGiver giver_;
  const GivenUp given_up_;  // null: never
  mutable Mutex mutex_;
  OfferPlace place_ WEFT_GUARDED_BY(mutex_);
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft

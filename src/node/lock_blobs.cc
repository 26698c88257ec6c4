#include "node/lock_blobs.h"

#include <map>

namespace weft {
namespace {

// gc may move blobs between a look and a lock; it does not do so for ever.
constexpr int kLockRoundsMax = 16;

// Places of blobs, found pack by pack. A place seen in a snapshot that was taken after its pack was locked is sure: gc
// moves nothing out of a locked pack.
class BlobLocker {
 public:
  enum class Absent : bool { refused, left };
  BlobLocker(Store& store, std::span<const ContentId> blobs, Absent absent)
      : store_(store), blobs_(blobs), absent_(absent), places_(blobs.size()) {}

  Result<std::vector<LockedPlace>> run(Remembered known) {
    if (known.places != nullptr) {
      WEFT_TRY(const bool still, recall(known));
      if (still) return std::move(places_);
    }
    if (!blobs_.empty()) WEFT_CHECK(lock(0));  // most files lie in one pack
    if (blobs_.size() == 1 && known.places == nullptr) return std::move(places_);
    for (int round = 0; round < kLockRoundsMax; ++round) {
      WEFT_TRY(const auto to_lock, look());
      if (to_lock.empty()) {
        if (known.places != nullptr) remember(known);
        return std::move(places_);
      }
      for (const auto& [pack, blob] : to_lock) WEFT_CHECK(lock(blob));
    }
    return Error{Errc::busy, "the packs of this file keep moving"};
  }

 private:
  // Fills in what lies in locked packs; returns the other packs, each with one of its blobs.
  Result<std::map<PackId, std::size_t>> look() {
    std::map<PackId, std::size_t> to_lock;
    WEFT_TRY(const auto snapshot, store_.snapshot());
    sequence_ = snapshot->sequence();
    for (std::size_t i = 0; i < blobs_.size(); ++i) {
      if (places_[i].pack) continue;
      const auto place = snapshot->find_blob(blobs_[i]);
      if (!place.ok() && is_left(place.error())) continue;
      if (!place.ok()) return place.error();
      const auto locked = packs_.find(place->pack);
      if (locked == packs_.end())
        to_lock.emplace(place->pack, i);
      else
        places_[i] = {locked->second, place->offset};
    }
    return to_lock;
  }

  bool is_left(const Error& error) const { return absent_ == Absent::left && error.code == Errc::absent; }

  Status lock(std::size_t blob) {
    auto place = store_.lock_blob(blobs_[blob]);
    if (!place.ok() && is_left(place.error())) return {};
    if (!place.ok()) return place.error();
    place->pack = packs_.emplace(place->pack->id(), place->pack).first->second;
    places_[blob] = *std::move(place);
    return {};
  }

  // Takes the places that were found before, if there was no commit since. True when that is so.
  Result<bool> recall(Remembered known) {
    const auto found = known.places->find(known.file);
    if (!found || found->of_blobs.size() != blobs_.size()) return false;
    for (std::size_t i = 0; i < blobs_.size(); ++i)
      if (!packs_.contains(found->of_blobs[i].pack)) WEFT_CHECK(lock(i));
    WEFT_TRY(const auto snapshot, store_.snapshot());
    if (snapshot->sequence() != found->sequence) return false;
    for (std::size_t i = 0; i < blobs_.size(); ++i) {
      const BlobPlace& place = found->of_blobs[i];
      const auto locked = packs_.find(place.pack);
      if (locked == packs_.end()) return false;
      places_[i] = {locked->second, place.offset};
    }
    return true;
  }

  // A blob that was locked in an earlier round is where it was: gc moves nothing out of a locked pack.
  void remember(Remembered known) const {
    KnownPlaces::Places places{sequence_, {}};
    places.of_blobs.reserve(places_.size());
    for (const LockedPlace& place : places_) places.of_blobs.push_back({place.pack->id(), place.offset});
    known.places->put(known.file, std::move(places));
  }

  Store& store_;
  std::span<const ContentId> blobs_;
  const Absent absent_;
  std::vector<LockedPlace> places_;
  std::map<PackId, std::shared_ptr<const PackReader>> packs_;
  std::uint64_t sequence_ = 0;  // of the last look
};

}  // namespace

Result<std::vector<LockedPlace>> lock_blobs(Store& store, std::span<const ContentId> blobs, Remembered known) {
  return BlobLocker(store, blobs, BlobLocker::Absent::refused).run(known);
}

Result<std::vector<LockedPlace>> lock_present_blobs(Store& store, std::span<const ContentId> blobs) {
  return BlobLocker(store, blobs, BlobLocker::Absent::left).run({});
}

}  // namespace weft

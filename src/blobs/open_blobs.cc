#include "blobs/open_blobs.h"

#include <map>

#include "weft/store/walk.h"

namespace weft {
namespace {

// gc may move a blob between lookup and open. It does not do that endlessly.
constexpr int kLockRoundsMax = 16;

// Opens blobs pack by pack. A place in an open pack is valid in any later state of the index, since a pack never
// changes or drops the blobs that it lists.
class BlobLocker {
 public:
  enum class Absent : bool { refused, left };
  BlobLocker(Store& store, std::span<const ContentId> blobs, Absent absent)
      : store_(store), blobs_(blobs), absent_(absent), places_(blobs.size()) {}

  enum class State : bool { any, told };
  Result<std::vector<OpenPlace>> run(State wanted) {
    if (!blobs_.empty()) WEFT_CHECK(lock(0));  // most files lie in one pack
    if (blobs_.size() == 1 && wanted == State::any) return std::move(places_);
    for (int round = 0; round < kLockRoundsMax; ++round) {
      WEFT_TRY(const auto to_lock, read_places());
      if (to_lock.empty()) return std::move(places_);
      for (const auto& [pack, blob] : to_lock) WEFT_CHECK(lock(blob));
    }
    return Error{Errc::busy, "the packs of this file keep moving"};
  }
  // The state of the index at the last lookup. Places of earlier rounds are still valid then.
  const IndexState& state() const { return state_; }

 private:
  // Sets the places of blobs in open packs. Returns the other packs, each with the index of one of its blobs.
  Result<std::map<PackId, std::size_t>> read_places() {
    std::map<PackId, std::size_t> to_lock;
    Renewed renewed(store_);
    WEFT_TRY(Snapshot * first, renewed.get());
    state_ = first->state();
    for (std::size_t i = 0; i < blobs_.size(); ++i) {
      if (places_[i].pack) continue;
      WEFT_TRY(Snapshot * now, renewed.get());
      const auto place = now->find_blob(blobs_[i]);
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
    auto place = store_.open_blob(blobs_[blob]);
    if (!place.ok() && is_left(place.error())) return {};
    if (!place.ok()) return place.error();
    place->pack = packs_.emplace(place->pack->id(), place->pack).first->second;
    places_[blob] = *std::move(place);
    return {};
  }

  Store& store_;
  std::span<const ContentId> blobs_;
  const Absent absent_;
  std::vector<OpenPlace> places_;
  std::map<PackId, std::shared_ptr<const PackReader>> packs_;
  IndexState state_;  // at the start of the last lookup
};

// Returns the cached runs if there was no commit since they were found, else nothing.
Result<std::vector<Run>> recall(Store& store, std::span<const ContentId> blobs, std::uint64_t offset,
                                Remembered known) {
  const auto found = known.places->find(known.file);
  if (!found || found->blobs != blobs.size()) return std::vector<Run>();
  std::map<PackId, std::shared_ptr<const PackReader>> packs;
  std::vector<Run> runs;
  runs.reserve(found->runs.size());
  for (const KnownPlaces::Run& run : found->runs) {
    auto& pack = packs[run.place.pack];
    if (!pack) {
      auto locked = store.open_place(blobs[run.first], run.place);
      if (!locked.ok()) return std::vector<Run>();  // the following lookup reports the error
      pack = std::move(locked->pack);
    }
    runs.push_back({offset, run.length, {pack, run.place.offset}});
    offset += run.length;
  }
  WEFT_TRY(const IndexState now, store.state());
  if (now != found->state) runs.clear();
  return runs;
}

}  // namespace

Result<std::vector<OpenPlace>> open_blobs(Store& store, std::span<const ContentId> blobs) {
  return BlobLocker(store, blobs, BlobLocker::Absent::refused).run(BlobLocker::State::any);
}

Result<std::vector<OpenPlace>> open_present_blobs(Store& store, std::span<const ContentId> blobs) {
  return BlobLocker(store, blobs, BlobLocker::Absent::left).run(BlobLocker::State::any);
}

Result<std::vector<Run>> open_runs(Store& store, std::span<const ContentId> blobs, std::uint64_t offset,
                                   Remembered known) {
  if (known.places != nullptr) {
    WEFT_TRY(auto runs, recall(store, blobs, offset, known));
    if (!runs.empty()) return runs;
  }
  BlobLocker locker(store, blobs, BlobLocker::Absent::refused);
  WEFT_TRY(auto places, locker.run(known.places != nullptr ? BlobLocker::State::told : BlobLocker::State::any));
  std::vector<Run> runs;
  KnownPlaces::Places found{locker.state(), blobs.size(), {}};
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    const OpenPlace& place = places[i];
    if (append_run(runs, {offset, blobs[i].length, place}))
      found.runs.back().length = runs.back().length;
    else
      found.runs.push_back({i, blobs[i].length, {place.pack->id(), place.offset}});
    offset += blobs[i].length;
  }
  runs.shrink_to_fit();
  if (known.places != nullptr) known.places->put(known.file, std::move(found));
  return runs;
}

}  // namespace weft

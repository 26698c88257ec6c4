#include "origin/rewrite.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "origin/deletions.h"
#include "os/sys.h"

namespace weft {
namespace {

// Returns the pack id for copy `n` of these blobs: the same for each try, and another one for other blobs.
PackId id_of_copy(PackId old, const std::vector<PackEntry>& entries, std::uint64_t n) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(&old, 1)));
  hash.update(std::as_bytes(std::span(&n, 1)));
  for (const PackEntry& entry : entries) {
    hash.update(std::as_bytes(std::span(&entry.offset, 1)));
    hash.update(std::as_bytes(std::span(entry.id.root.bytes)));
  }
  const Digest digest = hash.finish();
  PackId id = 0;
  std::memcpy(&id, digest.bytes.data(), sizeof id);
  return with_kind(id, kind_of_pack(old));
}

bool may_be_tried_later(Errc code) {
  return code == Errc::corrupt || code == Errc::not_found || code == Errc::no_space || code == Errc::io;
}

}  // namespace

Result<bool> PackRewrites::has_present_name(const Digest& manifest) const {
  const std::uint64_t names = origin_.freed().names_of(manifest);
  if (names == 0) return true;
  WEFT_TRY(const SafePath directory, origin_.directory());
  return stat_file(directory / "places" / text_of({manifest, names})).ok();
}

Result<bool> PackRewrites::has_work(const std::set<Digest>& placed, const std::set<PackId>& packs) const {
  const FreedFiles& freed = origin_.freed();
  if (!wanted_.empty() || std::ranges::any_of(freed.packs, [&](PackId pack) { return packs.contains(pack); }))
    return true;
  for (const auto& [manifest, names] : freed.manifests) {
    if (!placed.contains(manifest)) continue;
    WEFT_TRY(const bool has, has_present_name(manifest));
    if (!has) return true;
  }
  return false;
}

// Errc::corrupt, Errc::not_found, Errc::no_space: the manifest gets no new name.
Status PackRewrites::check_movable(const Digest& manifest) const {
  if (origin_.freed().names_of(manifest) >= limits::kFreedNamesMax)
    return Error{Errc::no_space, fmt::format("manifest {} has no more names", to_hex(manifest))};
  WEFT_CHECK(origin_.manifest(manifest));
  return {};
}

// Adds the manifest to moves_ if it leaves old packs, or if only freed names of it are left. New places lead to no
// listed pack. So a manifest that would still lead to one does not move, and then all its packs stay: move() would
// otherwise leave its places at a pack that the collection deletes.
Status PackRewrites::read_places(const Digest& manifest) {
  WEFT_TRY(const Places places, origin_.places(manifest));
  std::map<PackId, Blobs> old;
  bool stays = false;
  for (const auto& [id, place] : places.blobs) {
    const bool listed = origin_.freed().has_pack(place.pack);
    if (left_out_.contains(place.pack))
      stays = stays || listed;
    else if (listed || wanted_.contains(place.pack))
      old[place.pack].emplace(id, place.offset);
  }
  if (old.empty()) {
    WEFT_TRY(const bool has, has_present_name(manifest));
    if (has) return {};
  }
  const Status movable = stays ? Status{} : check_movable(manifest);
  if (!movable.ok() && !may_be_tried_later(movable.error().code)) return movable;
  if (!movable.ok()) log_warning("gc --origin: packs of a version stay: {}", movable.error().message);
  if (stays || !movable.ok()) {
    for (const auto& [pack, blobs] : old) leave_out(pack);
    return {};
  }
  for (auto& [pack, blobs] : old) named_[pack].merge(blobs);
  moves_.push_back(manifest);
  return {};
}

// Reads all places until none of them leaves out another pack: places that were read before may lead to that pack.
Status PackRewrites::read_all(const std::set<Digest>& placed) {
  do {
    some_left_out_ = false;
    moves_.clear();
    named_.clear();
    for (const Digest& manifest : placed) {
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_CHECK(read_places(manifest));
    }
  } while (some_left_out_);
  return {};
}

Status PackRewrites::copy(PackId old) {
  WEFT_TRY(PackToc toc, origin_.toc(old));
  std::erase_if(toc.entries, [this](const PackEntry& entry) { return !is_needed_(entry.id); });
  for (const auto& [id, offset] : named_.at(old))
    if (find_entry(toc, id, offset) == nullptr)
      return Error{Errc::corrupt, "its table of contents lacks a blob that a version needs"};
  // A list names earlier copies that were left: they may be deleted.
  std::uint64_t n = 0;
  do toc.pack = id_of_copy(old, toc.entries, n++);
  while (origin_.freed().has_pack(toc.pack));
  toc.size = 0;
  for (const PackEntry& entry : toc.entries) toc.size = std::max(toc.size, entry.offset + entry.id.length);
  WEFT_TRY(const Fd pack, origin_.open_pack(old));
  WEFT_CHECK(origin_.put_pack(toc, pack.get(), progress_));
  packs_[old] = toc.pack;
  return {};
}

// Returns the packs to copy: listed ones first, because a collection that was stopped may delete them, then those with
// most dead bytes.
std::vector<PackId> PackRewrites::uncopied() const {
  std::vector<PackId> packs;
  for (const auto& [pack, blobs] : named_)
    if (!packs_.contains(pack)) packs.push_back(pack);
  std::ranges::stable_sort(packs, std::greater(),
                           [this](PackId pack) { return std::pair(origin_.freed().has_pack(pack), dead_bytes(pack)); });
  return packs;
}

// Leaves out the packs that cannot be copied, and all remaining ones if the origin is full.
Status PackRewrites::copy_all() {
  bool full = false;
  for (const PackId pack : uncopied()) {
    WEFT_CHECK(check_cancelled(progress_));
    if (full) {
      leave_out(pack);
      continue;
    }
    const Status copied = copy(pack);
    if (copied.ok()) continue;
    if (!may_be_tried_later(copied.error().code)) return copied;
    log_warning("gc --origin: {} is not rewritten: {}", origin_pack_name(origin_.path(), pack), copied.error().message);
    full = copied.error().code == Errc::no_space;
    leave_out(pack);
  }
  return {};
}

Status PackRewrites::give_up(const Error& why) {
  moves_.clear();
  packs_.clear();
  planned_for_ = origin_.freed().sequence;
  if (!may_be_tried_later(why.code)) return why;
  log_warning("gc --origin: no pack is rewritten: {}", why.message);
  return {};
}

Status PackRewrites::plan(const std::set<Digest>& placed, const std::set<PackId>& packs) {
  if (planned_for_ == origin_.freed().sequence) return {};
  moves_.clear();
  named_.clear();
  packs_.clear();
  WEFT_TRY(const bool work, has_work(placed, packs));
  if (!work) return {};
  progress_.phase("rewriting packs");
  do {
    const Status read = read_all(placed);
    if (!read.ok()) return give_up(read.error());
    WEFT_CHECK(copy_all());
  } while (some_left_out_);
  std::erase_if(packs_, [this](const auto& one) { return !named_.contains(one.first); });
  planned_for_ = origin_.freed().sequence;
  return {};
}

// Returns false if the places lead to a pack that this list names and that has no copy: another collection has moved
// them there meanwhile.
bool PackRewrites::lead_to_copies(Places& places) const {
  for (auto& [id, place] : places.blobs) {
    if (const auto copy = packs_.find(place.pack); copy != packs_.end())
      place.pack = copy->second;
    else if (origin_.freed().has_pack(place.pack))
      return false;
  }
  return true;
}

// Places lead to packs that no list names. So only this list's name is written: under a later name, another collection
// may write places, and relies on no pack of its own list.
Result<bool> PackRewrites::move() const {
  bool all = true;
  for (const Digest& manifest : moves_) {
    WEFT_CHECK(check_cancelled(progress_));
    WEFT_TRY(const auto bytes, if_there(origin_.manifest(manifest)));
    WEFT_TRY(auto places, if_there(origin_.places(manifest)));
    const bool leaves = bytes && places && lead_to_copies(*places);
    all = all && leaves;
    if (!leaves) continue;
    WEFT_CHECK(origin_.put_manifest(manifest, *bytes));
    WEFT_CHECK(origin_.put_places(*places));
  }
  return all;
}

}  // namespace weft

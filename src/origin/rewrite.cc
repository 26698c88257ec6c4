#include "origin/rewrite.h"

#include <algorithm>
#include <cstring>
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

// Returns the pack id for a copy of these blobs: the same for each try, and another one for other blobs.
PackId id_of_copy(PackId old, const std::vector<PackEntry>& entries) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(&old, 1)));
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

// True if the places have a name that is not freed.
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

// Adds the old packs to which these places lead. True if the manifest moves: to leave old packs, or because only freed
// names of it are left. Errc::corrupt, Errc::not_found: it cannot be moved.
Result<bool> PackRewrites::read_places(const Digest& manifest) {
  WEFT_TRY(const Places places, origin_.places(manifest));
  bool moves = false;
  for (const auto& [id, place] : places.blobs)
    if (wanted_.contains(place.pack) || origin_.freed().has_pack(place.pack)) {
      named_[place.pack].emplace(id, place.offset);
      moves = true;
    }
  if (!moves) {
    WEFT_TRY(const bool has, has_present_name(manifest));
    if (has) return false;
  }
  if (origin_.freed().names_of(manifest) >= limits::kFreedNamesMax)
    return Error{Errc::no_space, fmt::format("manifest {} has no more names", to_hex(manifest))};
  WEFT_CHECK(origin_.manifest(manifest));
  return true;
}

// False if the pack stays as it is.
Result<bool> PackRewrites::copy(PackId old) {
  const auto done = [&]() -> Status {
    WEFT_TRY(PackToc toc, origin_.toc(old));
    std::erase_if(toc.entries, [this](const PackEntry& entry) { return !is_needed_(entry.id); });
    for (const auto& [id, offset] : named_.at(old))
      if (find_entry(toc, id, offset) == nullptr)
        return Error{Errc::corrupt, "its table of contents lacks a blob that a version needs"};
    toc.pack = id_of_copy(old, toc.entries);
    toc.size = 0;
    for (const PackEntry& entry : toc.entries) toc.size = std::max(toc.size, entry.offset + entry.id.length);
    if (origin_.freed().has_pack(toc.pack))
      return Error{Errc::not_found, "an earlier copy of these blobs may be deleted"};
    WEFT_TRY(const Fd pack, origin_.open_pack(old));
    WEFT_CHECK(origin_.put_pack(toc, pack.get(), progress_));
    packs_[old] = toc.pack;
    return {};
  }();
  if (done.ok()) return true;
  if (!may_be_tried_later(done.error().code)) return done.error();
  log_warning("gc --origin: {} is not rewritten: {}", origin_pack_name(origin_.path(), old), done.error().message);
  return false;
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
  WEFT_TRY(const bool work, has_work(placed, packs));
  if (!work) return packs_.clear(), Status{};
  progress_.phase("rewriting packs");
  for (const Digest& manifest : placed) {
    WEFT_CHECK(check_cancelled(progress_));
    const auto moves = read_places(manifest);
    if (!moves.ok()) return give_up(moves.error());
    if (*moves) moves_.push_back(manifest);
  }
  packs_.clear();
  for (const auto& [pack, blobs] : named_) {
    WEFT_CHECK(check_cancelled(progress_));
    WEFT_TRY(const bool copied, copy(pack));
    if (copied) continue;
    wanted_.erase(pack);
    if (origin_.freed().has_pack(pack))
      return give_up({Errc::corrupt, fmt::format("{}: versions need it, and a collection may delete it",
                                                 origin_pack_name(origin_.path(), pack))});
    return plan(placed, packs);  // without this pack
  }
  planned_for_ = origin_.freed().sequence;
  return {};
}

// Places lead to packs that no list names. So only this list's name is written: under a later name, another collection
// may write places, and relies on no pack of its own list.
Result<bool> PackRewrites::move() const {
  bool all = true;
  for (const Digest& manifest : moves_) {
    WEFT_CHECK(check_cancelled(progress_));
    WEFT_TRY(const auto bytes, if_there(origin_.manifest(manifest)));
    WEFT_TRY(auto places, if_there(origin_.places(manifest)));
    all = all && bytes && places;
    if (!bytes || !places) continue;
    for (auto& [id, place] : places->blobs)
      if (const auto copy = packs_.find(place.pack); copy != packs_.end()) place.pack = copy->second;
    WEFT_CHECK(origin_.put_manifest(manifest, *bytes));
    WEFT_CHECK(origin_.put_places(*places));
  }
  return all;
}

}  // namespace weft

// Rewrites packs of an origin for a collection (origin/collect.h): packs that are partly dead, and packs that a list of
// freed files names although places of a version lead to them. In these steps:
//
//   1. plan() copies the needed blobs of such a pack into a new pack, at the same offsets.
//   2. The collection lists the old pack as freed, and the present name of each manifest whose places lead to it, and
//      announces the list.
//   3. move() writes each of these manifests again, with places that lead to the new pack, under its next name.
//
// A reader finds the bytes at every point: the old pack and the old names are deleted after step 3 alone. The id of a
// new pack follows from the old pack and the copied blobs. So if a collection is stopped, the next one continues with
// its copies. Two collections at once never write the same name of a manifest, because their announcements have an
// order; and the places that the later one writes lead to no pack that the earlier one may delete.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "origin/dir.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// For one thread. All arguments outlive this.
class PackRewrites {
 public:
  PackRewrites(const OriginDir& origin, std::function<bool(const ContentId&)> is_needed, Progress& progress)
      : origin_(origin), is_needed_(std::move(is_needed)), progress_(progress) {}

  void add(PackId pack, std::uint64_t dead_bytes) { wanted_[pack] = dead_bytes; }  // a partly dead pack
  std::uint64_t wanted() const { return wanted_.size(); }
  // Plans for the list that `origin` knows, unless that was done already. `placed`: the manifests of all
  // versions that need content and have places; `packs`: the packs to which these led when they were read first. Copies
  // the packs with most dead bytes first, and no more of them if the origin is full. A pack that cannot be copied
  // stays, and so do a damaged manifest and all packs that it names.
  Status plan(const std::set<Digest>& placed, const std::set<PackId>& packs);
  const std::vector<Digest>& moves() const { return moves_; }  // manifests that get a new name
  // Call after the announcement, when `origin` knows exactly the announced list. False if a manifest is gone: a later
  // collection has freed it.
  Result<bool> move() const;

  // True if the places of a manifest have a name that no list frees.
  Result<bool> has_present_name(const Digest& manifest) const;

  const std::map<PackId, PackId>& packs() const { return packs_; }  // old pack -> new one
  bool is_copy(PackId pack) const {
    return std::ranges::any_of(packs_, [pack](const auto& one) { return one.second == pack; });
  }
  std::uint64_t dead_bytes(PackId old) const {
    const auto at = wanted_.find(old);
    return at == wanted_.end() ? 0 : at->second;
  }

 private:
  Result<bool> has_work(const std::set<Digest>& placed, const std::set<PackId>& packs) const;
  using Blobs = std::set<std::pair<ContentId, std::uint64_t>>;  // with their offsets
  Status read_all(const std::set<Digest>& placed);
  Status read_places(const Digest& manifest);
  Status check_movable(const Digest& manifest) const;
  void leave_out(PackId pack) { some_left_out_ = left_out_.insert(pack).second || some_left_out_; }
  std::vector<PackId> uncopied() const;
  Status copy_all();
  Status copy(PackId pack);
  Status give_up(const Error& why);
  bool lead_to_copies(Places& places) const;

  const OriginDir& origin_;
  const std::function<bool(const ContentId&)> is_needed_;
  Progress& progress_;
  std::map<PackId, std::uint64_t> wanted_;  // with their dead bytes
  std::map<PackId, Blobs> named_;           // old packs that places will leave, and the blobs of these places
  std::set<PackId> left_out_;               // old packs that stay
  bool some_left_out_ = false;              // since the places were read
  std::map<PackId, PackId> packs_;
  std::vector<Digest> moves_;
  std::optional<std::uint64_t> planned_for_;  // sequence of a list
};

}  // namespace weft

#include "origin/stage.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "base/sha256.h"
#include "blobs/open_blobs.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "origin/deletions.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

// Number of a blob's holders, from each end, whose places at the origin are searched for it.
constexpr std::size_t kHoldersAsked = 8;

std::vector<ContentId> blobs_of(const Manifest& manifest) {
  std::set<ContentId> blobs;
  for (const File& file : manifest.files)
    for (const Extent& extent : file.extents) blobs.insert(extent.id);
  return {blobs.begin(), blobs.end()};
}

// Other versions that hold a blob.
struct Others {
  std::vector<Digest> manifests;
  bool elsewhere = false;  // a version of another node holds the blob; that node copies it to the origin
};

Result<Others> others_with(Store& store, const ContentId& id, const VersionRow& but) {
  Others others;
  auto& manifests = others.manifests;
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const auto holders, snapshot->some_holders(id, kHoldersAsked));
  for (const auto& [version, file] : holders) {
    if (version == but.id || manifests.size() >= 2 * kHoldersAsked) continue;
    WEFT_TRY(const VersionRow row, snapshot->version(version));
    others.elsewhere = others.elsewhere || row.publisher != but.publisher;
    if (std::ranges::find(manifests, row.manifest) == manifests.end()) manifests.push_back(row.manifest);
  }
  return others;
}

Digest digest_of(const std::vector<ManifestName>& names) {
  Sha256 hash;
  for (const ManifestName& name : names) {
    hash.update(std::as_bytes(std::span(name.digest.bytes)));
    hash.update(std::as_bytes(std::span(&name.n, 1)));
  }
  return hash.finish();
}

class Staging {
 public:
  Staging(const RevocableStore& store, const OriginDir& origin, const VersionRow& row, Progress& progress,
          SearchedFor& searched_for, PaceGate* gate)
      : store_(store), origin_(origin), row_(row), progress_(progress), searched_for_(searched_for), gate_(gate) {}

  Status run() {
    if (!origin_.holds(row_.manifest)) {
      WEFT_TRY(const VersionHold hold, store_.use([&](Store& store) { return store.hold_version(row_.id); }));
      WEFT_TRY(const auto reader, store_.use([&](Store& store) { return store.open_manifest(row_.manifest); }));
      WEFT_TRY(const Manifest manifest, decode_manifest(reader->bytes()));
      WEFT_CHECK(put_content(blobs_of(manifest)));
      WEFT_CHECK(origin_.put_places(places_));
      WEFT_CHECK(origin_.put_manifest(row_.manifest, reader->bytes()));  // last: all that it names exists now
    }
    return origin_.put_event(row_, {});
  }

 private:
  Status put_content(const std::vector<ContentId>& blobs) {
    places_.manifest = row_.manifest;
    WEFT_TRY(const auto here, store_.use([&](Store& store) {
      store_path_ = store.directory();
      return open_present_blobs(store, blobs);
    }));
    std::map<PackId, std::vector<std::size_t>> to_put;
    std::vector<std::size_t> lost;
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      places_.blobs.emplace_back(blobs[i], BlobPlace{});
      WEFT_TRY(const auto place, at_origin(blobs[i], here[i]));
      if (place)
        places_.blobs.back().second = *place;
      else if (here[i].pack)
        to_put[here[i].pack->id()].push_back(i);
      else if (others_.elsewhere)
        return nowhere(blobs[i], Errc::not_found);
      else
        lost.push_back(i);
    }
    WEFT_CHECK(search_all(std::move(lost)));
    for (const auto& [pack, members] : to_put) WEFT_CHECK(put_pack(*here[members.front()].pack, members));
    return {};
  }

  // Returns the place of a blob that the origin already has.
  Result<std::optional<BlobPlace>> at_origin(const ContentId& id, const OpenPlace& here) {
    if (here.pack) {
      const PackToc* toc = toc_of(here.pack->id());
      if (toc != nullptr && lists_blob(*toc, id, here.offset)) return std::optional(BlobPlace{toc->pack, here.offset});
    }
    WEFT_TRY(others_, store_.use([&](Store& store) { return others_with(store, id, row_); }));
    for (const Digest& manifest : others_.manifests)
      if (const Places* places = places_of(manifest))
        if (auto place = place_in(*places, id)) return place;
    return std::optional<BlobPlace>();
  }

  // Returns the place of a blob, unless a collection may delete the pack or has deleted it.
  std::optional<BlobPlace> place_in(const Places& places, const ContentId& id) {
    const auto place = places.find(id);
    return place && toc_of(place->pack) != nullptr ? place : std::nullopt;
  }

  Error nowhere(const ContentId& id, Errc code) const {
    return Error{code, fmt::format("{}@{}: {} bytes with digest {} are neither here nor at the origin", row_.model_name,
                                   row_.number, id.length, to_hex(id.root))};
  }

  // Searches the places of all manifests for blobs that no live version of another node holds: a removed version may
  // have brought them to the origin.
  Status search_all(std::vector<std::size_t> lost) {
    if (lost.empty()) return {};
    WEFT_TRY(const SafePath directory, origin_.directory());
    WEFT_TRY(const auto names, list_manifest_names(directory / "places"));
    const SearchedOrigin now{digest_of(names), origin_.freed().sequence};
    for (const std::size_t i : lost) {
      const auto scanned = searched_for_.find(places_.blobs[i].first);
      if (scanned != searched_for_.end() && scanned->second == now) return nowhere(scanned->first, Errc::absent);
    }
    std::set<Digest> manifests;
    for (const ManifestName& name : names) manifests.insert(name.digest);
    for (const Digest& manifest : manifests) {
      if (lost.empty()) return {};
      WEFT_CHECK(check_cancelled(progress_));
      const auto places = origin_.places(manifest);
      if (!places.ok()) continue;
      std::erase_if(lost, [&](std::size_t i) {
        const auto place = place_in(*places, places_.blobs[i].first);
        if (place) places_.blobs[i].second = *place;
        return place.has_value();
      });
    }
    if (lost.empty()) return {};
    const ContentId& id = places_.blobs[lost.front()].first;
    searched_for_[id] = now;
    return nowhere(id, Errc::absent);
  }

  // toc_of() and places_of() return the origin's copy; null if it has none, or only one that a collection may delete.
  const PackToc* toc_of(PackId pack) {
    return origin_.freed().has_pack(pack) ? nullptr : read_once(tocs_, pack, [&] { return origin_.toc(pack); });
  }
  const Places* places_of(const Digest& manifest) {
    return read_once(known_, manifest, [&] { return origin_.places(manifest); });
  }

  // Copies a pack as it is. If the origin has a pack with this id that lacks some of these blobs, or had one that a
  // collection may delete, copies them into a new pack.
  Status put_pack(const PackReader& pack, const std::vector<std::size_t>& members) {
    WEFT_TRY(PackToc toc, read_toc_of(store_path_, pack.id()));
    toc.cached = toc.promoted = false;  // an origin keeps its packs
    if (toc_of(pack.id()) != nullptr || origin_.freed().has_pack(pack.id())) {
      toc.pack = new_pack_id(PackKind::blobs);
      std::erase_if(toc.entries, [&](const PackEntry& entry) {
        return std::ranges::none_of(members, [&](std::size_t i) { return places_.blobs[i].first == entry.id; });
      });
    }
    WEFT_CHECK(origin_.put_pack(toc, pack.fd(), progress_, gate_));
    for (const std::size_t i : members) {
      auto& [id, place] = places_.blobs[i];
      const auto entry = std::ranges::find(toc.entries, id, &PackEntry::id);
      if (entry == toc.entries.end())
        return Error{Errc::corrupt, fmt::format("pack {} does not list what the index says lies there; run `weft fsck`",
                                                pack_name(pack.id()))};
      place = {toc.pack, entry->offset};
    }
    return {};
  }

  const RevocableStore& store_;
  SafePath store_path_;
  const OriginDir& origin_;
  const VersionRow& row_;
  Progress& progress_;
  SearchedFor& searched_for_;
  PaceGate* const gate_;
  Places places_;
  Others others_;  // other holders of the blob that at_origin() searched last
  std::map<PackId, std::optional<PackToc>> tocs_;
  std::map<Digest, std::optional<Places>> known_;
};

}  // namespace

Status stage_version(const RevocableStore& store, const OriginDir& origin, const VersionRow& row, Progress& progress,
                     SearchedFor& searched_for, PaceGate* gate) {
  return Staging(store, origin, row, progress, searched_for, gate).run();
}

}  // namespace weft

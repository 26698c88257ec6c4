#include "node/stage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "node/lock_blobs.h"
#include "store/pack_file.h"
#include "store/toc.h"
#include "weft/manifest.h"

namespace weft {
namespace {

// Of a blob's other versions, so many are asked where it lies at the origin.
constexpr std::size_t kHoldersAsked = 8;

std::vector<ContentId> blobs_of(const Manifest& manifest) {
  std::set<ContentId> blobs;
  for (const File& file : manifest.files)
    for (const Extent& extent : file.extents) blobs.insert(extent.id);
  return {blobs.begin(), blobs.end()};
}

class Staging {
 public:
  Staging(Store& store, const OriginDir& origin, const VersionRow& row, Progress& progress)
      : store_(store), origin_(origin), row_(row), progress_(progress) {}

  Status run() {
    WEFT_TRY(const auto reader, store_.open_manifest(row_.manifest));
    if (!origin_.places(row_.manifest).ok() || !origin_.manifest(row_.manifest).ok()) {
      WEFT_TRY(const Manifest manifest, decode_manifest(reader->bytes()));
      WEFT_CHECK(put_content(blobs_of(manifest)));
      WEFT_CHECK(origin_.put_places(places_));
      WEFT_CHECK(origin_.put_manifest(row_.manifest, reader->bytes()));  // who finds it finds all that it names
    }
    return origin_.put_said(row_);
  }

 private:
  Status put_content(const std::vector<ContentId>& blobs) {
    places_.manifest = row_.manifest;
    WEFT_TRY(const auto here, lock_present_blobs(store_, blobs));
    std::map<PackId, std::vector<std::size_t>> to_put;
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      places_.blobs.emplace_back(blobs[i], BlobPlace{});
      WEFT_TRY(const auto place, at_origin(blobs[i], here[i]));
      if (place)
        places_.blobs.back().second = *place;
      else if (here[i].pack)
        to_put[here[i].pack->id()].push_back(i);
      else
        return Error{Errc::not_found,
                     fmt::format("{}@{}: {} bytes with digest {} are neither here nor at the origin", row_.model_name,
                                 row_.number, blobs[i].length, to_hex(blobs[i].root))};
    }
    for (const auto& [pack, members] : to_put) WEFT_CHECK(put_pack(*here[members.front()].pack, members));
    return {};
  }

  // Where this blob lies at the origin already.
  Result<std::optional<BlobPlace>> at_origin(const ContentId& id, const LockedPlace& here) {
    if (here.pack) {
      const PackToc* toc = toc_of(here.pack->id());
      if (toc != nullptr && lists(*toc, id, here.offset)) return std::optional(BlobPlace{toc->pack, here.offset});
    }
    std::vector<Digest> manifests;
    {
      WEFT_TRY(const auto snapshot, store_.snapshot());
      WEFT_TRY(const auto holders, snapshot->some_holders(id, kHoldersAsked));
      for (const auto& [version, file] : holders) {
        if (version == row_.id || manifests.size() >= 2 * kHoldersAsked) continue;
        WEFT_TRY(const VersionRow row, snapshot->version(version));
        if (std::ranges::find(manifests, row.manifest) == manifests.end()) manifests.push_back(row.manifest);
      }
    }
    for (const Digest& manifest : manifests)
      if (const Places* places = places_of(manifest))
        if (auto place = places->find(id)) return place;
    return std::optional<BlobPlace>();
  }

  static bool lists(const PackToc& toc, const ContentId& id, std::uint64_t offset) {
    const auto at = std::ranges::lower_bound(toc.entries, offset, {}, &PackEntry::offset);
    return at != toc.entries.end() && at->offset == offset && at->id == id;
  }

  // The origin's; null when it has none.
  const PackToc* toc_of(PackId pack) {
    auto [at, fresh] = tocs_.try_emplace(pack);
    if (fresh)
      if (auto toc = origin_.toc(pack); toc.ok()) at->second = std::move(toc).value();
    return at->second ? &*at->second : nullptr;
  }
  const Places* places_of(const Digest& manifest) {
    auto [at, fresh] = known_.try_emplace(manifest);
    if (fresh)
      if (auto places = origin_.places(manifest); places.ok()) at->second = std::move(places).value();
    return at->second ? &*at->second : nullptr;
  }

  // A pack goes there as it is; where one of its name is there that lacks some of these blobs, they go in a new one.
  Status put_pack(const PackReader& pack, const std::vector<std::size_t>& members) {
    WEFT_TRY(PackToc toc, read_toc_of(store_.path(), pack.id()));
    toc.cached = false;  // there it is for good
    if (toc_of(pack.id()) != nullptr) {
      toc.pack = *pack_of_name(random_hex(8), "");
      std::erase_if(toc.entries, [&](const PackEntry& entry) {
        return std::ranges::none_of(members, [&](std::size_t i) { return places_.blobs[i].first == entry.id; });
      });
    }
    WEFT_CHECK(origin_.put_pack(toc, pack.fd(), progress_));
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

  Store& store_;
  const OriginDir& origin_;
  const VersionRow& row_;
  Progress& progress_;
  Places places_;
  std::map<PackId, std::optional<PackToc>> tocs_;
  std::map<Digest, std::optional<Places>> known_;
};

}  // namespace

Status stage_version(Store& store, const OriginDir& origin, const VersionRow& row, Progress& progress) {
  return Staging(store, origin, row, progress).run();
}

}  // namespace weft

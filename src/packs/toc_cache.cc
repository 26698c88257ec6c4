#include "packs/toc_cache.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "os/sys.h"

namespace weft {
namespace {

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

std::uint64_t PackListing::fingerprint(const ContentId& id) {
  return std::hash<ContentId>{}(id);
}

PackListing::PackListing(const PackToc& toc) : cached_(toc.cached), boot_(toc.boot) {
  blobs_.reserve(toc.entries.size());
  for (const PackEntry& entry : toc.entries) blobs_.push_back({entry.offset, fingerprint(entry.id)});
}

bool PackListing::has(const ContentId& id, std::uint64_t offset) const {
  auto at = std::lower_bound(blobs_.begin(), blobs_.end(), offset,
                             [](const Blob& blob, std::uint64_t wanted) { return blob.offset < wanted; });
  return at != blobs_.end() && at->offset == offset && at->fingerprint == fingerprint(id);
}

Result<std::shared_ptr<const TocCache::Known>> TocCache::read(PackId pack, bool whole) {
  WEFT_TRY(const struct stat st, stat_file(toc_in(directory_, pack)));
  const auto known = known_.find(pack);
  if (known && same_file(known->file, st) && (known->whole || !whole)) return known;
  whole = whole || (known && known->whole);
  WEFT_TRY(PackToc toc, read_toc_in(directory_, pack));
  Known fresh{st, std::make_shared<const PackListing>(toc), nullptr};
  std::size_t bytes = fresh.listing->memory_bytes();
  if (whole) {
    bytes += memory_bytes(toc);
    fresh.whole = std::make_shared<const PackToc>(std::move(toc));
  }
  auto made = std::make_shared<const Known>(std::move(fresh));
  known_.put(pack, made, bytes);
  return made;
}

Result<std::shared_ptr<const PackListing>> TocCache::listing(PackId pack) {
  WEFT_TRY(const auto known, read(pack, false));
  return known->listing;
}

Result<std::vector<Digest>> TocCache::chunks(const ContentId& id, const BlobPlace& place) {
  // A pack keeps listing what it has listed, so a cached entry is valid even if the pack has grown.
  if (const auto known = known_.find(place.pack); known && known->whole)
    if (const PackEntry* entry = find_entry(*known->whole, id, place.offset)) return entry->chunks;
  WEFT_TRY(const auto now, read(place.pack, true));
  if (const PackEntry* entry = find_entry(*now->whole, id, place.offset)) return entry->chunks;
  return Error{Errc::not_found, fmt::format("{}: has no {} bytes with digest {} at {}", toc_in(directory_, place.pack),
                                            id.length, to_hex(id.root), place.offset)};
}

}  // namespace weft

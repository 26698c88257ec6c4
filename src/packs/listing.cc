#include "packs/listing.h"

#include <algorithm>
#include <utility>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kBlobsMax = 4U << 20U;  // of all listings that are kept

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

Result<std::shared_ptr<const PackListing>> PackListings::get(const SafePath& directory, PackId pack) {
  const SafePath path = toc_in(directory, pack);
  WEFT_TRY(struct stat st, stat_file(path));
  {
    std::lock_guard lock(mutex_);
    auto found = known_.find(pack);
    if (found != known_.end() && same_file(found->second.toc, st)) return found->second.listing;
  }
  WEFT_TRY(PackToc toc, read_toc_in(directory, pack));
  auto listing = std::make_shared<const PackListing>(toc);
  std::lock_guard lock(mutex_);
  if (blobs_ + listing->size() > kBlobsMax) {
    known_.clear();
    blobs_ = 0;
  }
  Known& known = known_[pack];
  if (known.listing) blobs_ -= known.listing->size();
  known = {st, listing};
  blobs_ += listing->size();
  return std::shared_ptr<const PackListing>(std::move(listing));
}

}  // namespace weft

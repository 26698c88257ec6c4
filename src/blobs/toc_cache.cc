#include "blobs/toc_cache.h"
#include "diskformat/toc.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace weft {
namespace {

const PackEntry* entry_of(const PackToc& toc, const ContentId& id, std::uint64_t offset) {
  const auto entry = std::lower_bound(toc.entries.begin(), toc.entries.end(), offset,
                                      [](const PackEntry& one, std::uint64_t at) { return one.offset < at; });
  return entry == toc.entries.end() || entry->id != id ? nullptr : &*entry;
}

}  // namespace

Result<TocCache::TocPointer> TocCache::read(PackId pack) {
  WEFT_TRY(PackToc toc, read_(pack));
  std::size_t bytes = toc.entries.size() * sizeof(PackEntry);
  for (const PackEntry& entry : toc.entries) bytes += entry.chunks.size() * sizeof(Digest);
  auto made = std::make_shared<const PackToc>(std::move(toc));
  tocs_.put(pack, made, bytes);
  return TocPointer(made);
}

// A cached pack's list grows: one that was kept may be of before.
Result<std::vector<Digest>> TocCache::digests(const ContentId& id, BlobPlace place) {
  if (const auto known = tocs_.find(place.pack))
    if (const PackEntry* entry = entry_of(*known, id, place.offset)) return entry->chunks;
  WEFT_TRY(const TocPointer toc, read(place.pack));
  if (const PackEntry* entry = entry_of(*toc, id, place.offset)) return entry->chunks;
  return Error{Errc::not_found, fmt::format("{}: has no {} bytes with digest {}", path_, id.length, to_hex(id.root))};
}

}  // namespace weft

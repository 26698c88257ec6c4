#include "reading/memory_parts.h"

#include "base/limits.h"
#include "os/file_map.h"
#include "os/page_cache.h"

namespace weft {

Status add_present(MemoryParts& parts, const PackReader& pack, std::uint64_t offset, std::size_t length) {
  const auto elsewhere = [] { return Error{Errc::absent, "not in memory"}; };
  const bool inside = offset <= pack.size() && length <= pack.size() - offset;  // packs grow after an open
  if (!inside || parts.size() >= limits::kReadPartsMax || !all_cached(pack.fd(), offset, length)) return elsewhere();
  const std::byte* const all = pack.map();
  if (all == nullptr || !make_present(all + offset, length)) return elsewhere();
  parts.emplace_back(all + offset, length);
  return {};
}

}  // namespace weft

#include "packs/use.h"

#include <algorithm>

#include "diskformat/pack_names.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {

Result<std::vector<CachedPack>> packs_by_use(const SafePath& directory, std::span<const PackId> ids,
                                             const std::set<PackId>& pinned) {
  constexpr std::uint64_t kSecond = 1'000'000'000;  // in nanoseconds
  std::vector<CachedPack> packs;
  for (const PackId id : ids) {
    auto st = stat_file(pack_in(directory, id));
    if (!st.ok() && st.error().code == Errc::not_found) continue;
    if (!st.ok()) return std::move(st).error();
    packs.push_back(
        {id, static_cast<std::uint64_t>(st->st_size), allocated_bytes(*st),
         static_cast<std::uint64_t>(st->st_mtim.tv_sec) * kSecond + static_cast<std::uint64_t>(st->st_mtim.tv_nsec),
         pinned.contains(id)});
  }
  std::ranges::sort(packs, {}, &CachedPack::used_ns);
  return packs;
}

}  // namespace weft

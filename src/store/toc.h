// The .toc of a pack: one record. Only user of its schema (in the .cc).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/safe_path.h"
#include "base/sys.h"
#include "store/packs.h"
#include "weft/result.h"

namespace weft {

std::vector<std::byte> encode_toc(const PackToc& toc);
// Checks what can be checked without the pack: checksum, order, bounds, and that each entry has its chunks.
Result<PackToc> decode_toc(std::span<const std::byte> bytes, std::string_view where);

// The entries of this pack that are whole in a damaged .toc, in whatever order it has them.
std::vector<PlacedBlob> salvage_toc(std::span<const std::byte> bytes, PackId pack);

// Written, its way to the disk begun; to be synced by the caller.
Result<Fd> begin_toc(const SafePath& path, const PackToc& toc);
// Durable, but for its directory entry: `path` is new, or replaced by way of `path`.new.
Status write_toc(const SafePath& path, const PackToc& toc);
Status replace_toc(const SafePath& path, const PackToc& toc);
Result<PackToc> read_toc(const SafePath& path);
Result<PackToc> read_toc_in(const SafePath& directory, PackId pack);  // Errc::corrupt also when it is another's
Result<PackToc> read_toc_of(const SafePath& store_path, PackId pack);

}  // namespace weft

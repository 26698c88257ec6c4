// The files of an origin that collections may delete: one record, freed/<sequence>. Each record repeats what the
// records before it have named. Only user of its schema (in the .cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct FreedFiles {
  std::uint64_t sequence = 0;  // grows with each collection; 0: there was none
  std::vector<PackId> packs;   // ascending
  // By digest: how many names of this manifest are freed. A new copy of the manifest and of its places gets the next
  // name (OriginDir), because a collection that was stopped may delete the freed names at any time.
  std::vector<std::pair<Digest, std::uint64_t>> manifests;
  // Rewritten packs among `packs`, ascending, with the time of the rewrite by the origin's clock. Readers may use a
  // pack for the grace period after it.
  std::vector<std::pair<PackId, std::uint64_t>> rewritten;

  bool has_pack(PackId pack) const;
  std::uint64_t names_of(const Digest& manifest) const;  // 0: none is freed
};

std::vector<std::byte> encode_freed(const FreedFiles& freed);
// Errc::corrupt: not a whole record, a record of another sequence, or entries out of order or out of bounds.
Result<FreedFiles> decode_freed(std::span<const std::byte> bytes, std::uint64_t sequence, std::string_view where);

}  // namespace weft

// Packs of manifests. Each manifest is the payload of a record (diskformat/record.h), and the records follow one
// another. So a reader of the pack needs no .toc. A .toc entry names one manifest, without the record's header,
// as one chunk whose digest is the manifest's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "diskformat/toc.h"
#include "packs/pack_writer.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Appends a manifest to the pack. Returns its entry, which the caller must list.
Result<PackEntry> write_manifest(PackWriter& pack, const Digest& digest, std::span<const std::byte> bytes);

// Reads a manifest. Errc::corrupt: the bytes there are not this manifest.
Result<std::vector<std::byte>> read_manifest(int fd, std::uint64_t offset, std::uint64_t length, const Digest& digest,
                                             std::string_view where);

inline const Digest& manifest_digest(const PackEntry& entry) {
  return entry.chunks.front();
}

// Returns the entries of all undamaged manifests in a pack of `size` bytes, by offset.
Result<std::vector<PackEntry>> scan_manifests(int fd, std::uint64_t size, std::string_view where);

}  // namespace weft

// Packs of manifests. Each manifest is the payload of a record (diskformat/record.h), and the records follow one
// another. So such a pack can be read without its table of contents. An entry of the .toc is a manifest alone: it has
// one chunk, whose digest is that of the manifest.
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

// Writes it behind what the pack has. Returns the entry, which the caller lists.
Result<PackEntry> write_manifest(PackWriter& pack, const Digest& digest, std::span<const std::byte> bytes);

// Reads a manifest back. Errc::corrupt: these bytes are not the manifest.
Result<std::vector<std::byte>> read_manifest(int fd, std::uint64_t offset, std::uint64_t length, const Digest& digest,
                                             std::string_view where);

inline const Digest& manifest_digest(const PackEntry& entry) {
  return entry.chunks.front();
}

// All manifests that are whole in a pack of `size` bytes, by offset.
Result<std::vector<PackEntry>> scan_manifests(int fd, std::uint64_t size, std::string_view where);

}  // namespace weft

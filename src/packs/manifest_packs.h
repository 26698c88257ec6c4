// Packs of manifests. Each manifest is the payload of a record (diskformat/record.h), and the records follow one
// another. So a reader of the pack needs no .toc. A .toc entry names one manifest, without the record's header,
// as one chunk whose digest is the manifest's. The .copy has the bytes of the .pack again, because one pack may have
// the manifests of thousands of versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "diskformat/record.h"
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

// Returns the entry of the manifest in these bytes, whatever it is.
Result<PackEntry> entry_at(int fd, std::uint64_t offset, std::uint64_t length, std::string_view where);
// Checks that the record of the entry is whole: the manifest and the header before it. Errc::corrupt.
Status check_record(int fd, const PackEntry& entry, std::string_view where);
// Writes the record of a manifest again, at the place of its entry.
Status rewrite_record(int fd, const PackEntry& entry, std::span<const std::byte> manifest, std::string_view where);

// True for an entry that can name a manifest. Call it for an entry of a .toc before manifest_digest().
inline bool names_manifest(const PackEntry& entry) {
  return entry.chunks.size() == 1 && entry.offset >= kRecordHeader && entry.id.length <= limits::kPackedManifestMax;
}
inline const Digest& manifest_digest(const PackEntry& entry) {
  return entry.chunks.front();
}

// Returns the entries of all undamaged manifests in a pack of `size` bytes, by offset.
Result<std::vector<PackEntry>> scan_manifests(int fd, std::uint64_t size, std::string_view where);

}  // namespace weft

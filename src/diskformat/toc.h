// The .toc of a pack: one record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct PackEntry {
  ContentId id;
  std::uint64_t offset = 0;
  std::vector<Digest> chunks;
  std::uint64_t hint = 0;  // XXH3-64 of the first MiB of a larger blob; 0: unknown
};

// The unverified location of a blob in a pack that lost its table of contents.
struct PlacedBlob {
  ContentId id;
  std::uint64_t offset = 0;
  std::uint64_t hint = 0;  // as PackEntry::hint
};

// The entries of a pack that is being written, in compact memory: a pack may have millions of small blobs.
class TocLines {
 public:
  bool empty() const { return lines_.empty(); }
  std::size_t size() const { return lines_.size(); }
  const PlacedBlob& blob(std::size_t number) const { return lines_[number].blob; }
  std::span<const Digest> chunks(std::size_t number) const;
  void add(const PackEntry& entry);
  PackEntry take(const ContentId& id);  // removes and returns the entry, which must be listed
  void sort();                          // by offset

 private:
  struct Line {
    PlacedBlob blob;
    std::uint32_t first = 0, count = 0;  // the blob's digests in chunks_
  };
  std::vector<Line> lines_;
  std::vector<Digest> chunks_;
};

struct PackToc {
  PackId pack = 0;
  std::uint64_t size = 0;
  std::vector<PackEntry> entries;  // by offset
  bool cached = false;             // fetched bytes: the pack may be evicted, and more blobs may be added
  bool promoted = false;           // was cached until a publish needed it; peers store these bytes too
  bool merged = false;             // written by gc from several packs: not the pack of one file
  // Id of a boot. For an assembled file: the boot in which it was last verified. For a pack: its bytes may exist only
  // in the page cache of this boot; "" if they are on the disk.
  std::string boot = {};
};

// Returns the entry for this blob at this offset; nullptr if there is none.
const PackEntry* find_entry(const PackToc& toc, const ContentId& id, std::uint64_t offset);
bool lists_blob(const PackToc& toc, const ContentId& id, std::uint64_t offset);

std::size_t memory_bytes(const PackToc& toc);  // approximate memory use of `toc`

std::vector<std::byte> encode_toc(const PackToc& toc);
// Decodes and checks checksum, order, bounds and the number of chunk digests. Does not read the pack.
Result<PackToc> decode_toc(std::span<const std::byte> bytes, std::string_view where);

// Returns the undamaged entries of a damaged .toc of this pack, in the order of the file.
std::vector<PlacedBlob> salvage_toc(std::span<const std::byte> bytes, PackId pack);

// Writes a .toc with the entries of `lines`, which are sorted, in place of those of `toc`. Starts writeback; the caller
// syncs.
Result<Fd> begin_toc(const SafePath& path, const PackToc& toc, const TocLines& lines);
// Both make the file durable, but not its directory entry. write_toc() truncates an existing file; replace_toc() writes
// `path`.new and renames it to `path`.
Status write_toc(const SafePath& path, const PackToc& toc);
Status replace_toc(const SafePath& path, const PackToc& toc);
Result<PackToc> read_toc(const SafePath& path);
Result<PackToc> read_toc_in(const SafePath& directory, PackId pack);  // Errc::corrupt also for a .toc of another pack
Result<PackToc> read_toc_of(const SafePath& store_path, PackId pack);

}  // namespace weft

// The .toc of a pack: one record. Only user of its schema (in the .cc).
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
  std::uint64_t hint = 0;  // tables.h; 0: unknown
};

// Where a blob is said to lie in a pack that lost its table of contents; not verified.
struct PlacedBlob {
  ContentId id;
  std::uint64_t offset = 0;
  std::uint64_t hint = 0;  // as PackEntry::hint
};

// The entries of a pack that is being written, in little memory: a pack may have millions of small ones.
class TocLines {
 public:
  bool empty() const { return lines_.empty(); }
  std::size_t size() const { return lines_.size(); }
  const PlacedBlob& blob(std::size_t number) const { return lines_[number].blob; }
  std::span<const Digest> chunks(std::size_t number) const;
  void add(const PackEntry& entry);
  PackEntry take(const ContentId& id);  // one that is listed
  void sort();                          // by offset

 private:
  struct Line {
    PlacedBlob blob;
    std::uint32_t first = 0, count = 0;  // of its chunks
  };
  std::vector<Line> lines_;
  std::vector<Digest> chunks_;
};

struct PackToc {
  PackId pack = 0;
  std::uint64_t size = 0;
  std::vector<PackEntry> entries;  // by offset
  bool cached = false;             // fetched: it may be evicted, and more blobs may come into it
  bool promoted = false;           // not cached any more, since a publish needed it; others have its bytes too
  bool merged = false;             // gc made it of several packs: it is not the pack of one file
  // A boot of the machine. Of an assembled file: under which it was last verified. Of a pack: its bytes may be in the
  // page cache of that boot alone; "": they are on the disk.
  std::string boot = {};
};

// Its entry of this blob there; nullptr if it has none.
const PackEntry* find_entry(const PackToc& toc, const ContentId& id, std::uint64_t offset);
bool lists_blob(const PackToc& toc, const ContentId& id, std::uint64_t offset);

std::size_t memory_bytes(const PackToc& toc);  // that it takes, about

std::vector<std::byte> encode_toc(const PackToc& toc);
// Checks what can be checked without the pack: checksum, order, bounds, and that each entry has its chunks.
Result<PackToc> decode_toc(std::span<const std::byte> bytes, std::string_view where);

// The entries of this pack that are whole in a damaged .toc, in whatever order it has them.
std::vector<PlacedBlob> salvage_toc(std::span<const std::byte> bytes, PackId pack);

// Written, its way to the disk begun; to be synced by the caller. Instead of the entries of `toc` it has those of
// `lines`, which are in order.
Result<Fd> begin_toc(const SafePath& path, const PackToc& toc, const TocLines& lines);
// Durable, but for its directory entry: `path` is new, or replaced by way of `path`.new.
Status write_toc(const SafePath& path, const PackToc& toc);
Status replace_toc(const SafePath& path, const PackToc& toc);
Result<PackToc> read_toc(const SafePath& path);
Result<PackToc> read_toc_in(const SafePath& directory, PackId pack);  // Errc::corrupt also when it is another's
Result<PackToc> read_toc_of(const SafePath& store_path, PackId pack);

}  // namespace weft

// Reads the small files of a data set, verified: each segment of a bundle is read and hashed as a whole.
#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/manifest.h"
#include "weft/node.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Caches the last few segments, because consecutive files mostly share one. One thread.
class BundledBytes {
 public:
  // `manifest` outlives this object. The caller holds the version.
  BundledBytes(Store& store, const Manifest& manifest)
      : store_(store), bundles_(files_of(manifest, FileRole::bundle)) {}

  // Returns the bytes of a file, valid until the next call. Errc::corrupt: the stored bytes are damaged, or the file
  // does not lie in one segment.
  Result<std::span<const std::byte>> of(const SmallFile& file);

 private:
  struct Segment {
    const Extent* extent = nullptr;
    std::vector<std::byte> bytes;
  };
  Result<std::vector<std::byte>> read(const Extent& extent, const SmallFile& file) const;

  Store& store_;
  const std::span<const File> bundles_;
  std::list<Segment> known_;  // most recently used first
};

}  // namespace weft

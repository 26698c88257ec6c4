// The bytes of a data set's small files, verified: each segment of a bundle is read and hashed as a whole.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/manifest.h"
#include "weft/node.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// One thread. Keeps the last few segments: files that follow one another mostly lie in one.
class BundledBytes {
 public:
  // `manifest` outlives this, and its version stays whole meanwhile.
  BundledBytes(Store& store, const Manifest& manifest)
      : store_(store), bundles_(files_of(manifest, FileRole::bundle)) {}

  // Valid until the next call. Errc::corrupt: the stored bytes are damaged, or the file lies in no one segment.
  Result<std::span<const std::byte>> of(const SmallFile& file);

 private:
  struct Segment {
    const Extent* extent = nullptr;
    std::vector<std::byte> bytes;
  };
  Result<std::vector<std::byte>> read(const Extent& extent, const SmallFile& file) const;

  Store& store_;
  const std::span<const File> bundles_;
  std::list<Segment> known_;  // the latest first
};

}  // namespace weft

// Moves small manifests from files into packs. It places the new pack before the index names it, and removes the files
// only after that. So each manifest exists at least once after a crash, and the next gc removes the duplicates.
#pragma once

#include <span>
#include <vector>

#include "store/parts/parts.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// One thread: gc's.
class ManifestPacker {
 public:
  explicit ManifestPacker(StoreParts& parts) : parts_(parts) {}
  Status run(Progress& progress);

 private:
  Result<std::vector<Digest>> loose_manifests();
  Status drop_packed_files(std::span<const Digest> manifests);
  Status pack_some(std::span<const Digest> manifests);

  StoreParts& parts_;
};

}  // namespace weft

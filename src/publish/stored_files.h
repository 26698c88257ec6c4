// Files of a new version that are files of stored versions already (StoredFile). Their bytes are neither read nor
// moved.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "publish/gather.h"
#include "weft/bytes/cold.h"
#include "weft/bytes/pack.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// One thread. The versions that the files come from stay whole while this object lives.
class StoredFiles {
 public:
  // `sources`: those that are stored, sorted by path. Errc::not_found: no such version, or no such file in it.
  // Errc::unsupported: its tensors lie in other files too, or it has records, or the version is of another kind.
  static Result<StoredFiles> load(Store& store, ManifestResolver& resolver, std::span<const SourceFile> sources,
                                  VersionKind kind);

  bool empty() const { return files_.empty(); }
  // Returns the manifest with these files. The manifest has none of their paths.
  Manifest added_to(Manifest manifest) const;

 private:
  Status take(const Manifest& manifest, const SourceFile& source);

  std::vector<File> files_;  // by path
  std::vector<VersionHold> holds_;
};

}  // namespace weft

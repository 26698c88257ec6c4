// Recognises the published files of a store in its own mounts. Their content is known, so that publishing one again
// needs neither to read nor to write its bytes.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/manifest.h"
#include "weft/node.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// One thread. Versions whose files were found stay whole while this lives.
class MountedFiles {
 public:
  // The mounts that this process sees now.
  static MountedFiles of(Store& store);

  // The published file that `seen` is of; nullptr if it is another file, or of a removed version. Valid while this
  // lives.
  Result<const File*> find(const struct stat& seen);

 private:
  explicit MountedFiles(Store& store) : store_(store) {}
  Result<const LoadedVersion*> version(VersionId id);

  Store& store_;
  std::vector<dev_t> devices_;  // of the mounts
  std::map<VersionId, LoadedVersion> versions_;
};

// A version's directory in layers/, tensors/ or lineage/ of a weft mount stands for the version's published files:
// returns their directory in models/. Any other path returns as it is. Errc::invalid for another directory of
// generated files.
Result<std::string> published_path(const std::string& path);

}  // namespace weft

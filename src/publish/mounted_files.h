// Recognises the published files of a store in its own mounts. Their content is known, so that publishing one again
// needs neither to read nor to write its bytes.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// One thread. The versions of the files that were found stay whole while this object lives.
class MountedFiles {
 public:
  // Looks up the mounts of the store that this process sees.
  static MountedFiles of(Store& store, ManifestResolver& resolver);

  // Returns the published file that `seen` belongs to; nullptr if it is another file, or of a removed version. Valid
  // while this object lives.
  Result<const File*> find(const struct stat& seen);

 private:
  MountedFiles(Store& store, ManifestResolver& resolver) : store_(store), resolver_(resolver) {}
  Result<const LoadedVersion*> version(VersionId id);

  Store& store_;
  ManifestResolver& resolver_;
  std::vector<dev_t> devices_;  // devices of the mounts
  std::map<VersionId, LoadedVersion> versions_;
};

bool is_in_mount(const std::string& path);  // of any store
// Returns the directory that a publish takes for `path`. A version's directory in layers/, tensors/ or lineage/ of a
// weft mount stands for its directory in models/. Any other path is returned unchanged. Errc::invalid for another
// directory of generated files.
Result<std::string> published_path(const std::string& path);

}  // namespace weft

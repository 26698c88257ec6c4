// The directories of data sets: published files below datasets/, records below records/. Any thread.
#pragma once

#include "vfs/container_dirs.h"
#include "vfs/dataset_dir.h"
#include "vfs/published_dirs.h"
#include "vfs/record_dirs.h"
#include "vfs/version_files.h"

namespace weft {

class Datasets {
 public:
  explicit Datasets(VersionFiles& versions) : versions_(versions) {}

  // Returns the subtree that serves this number of a version of a data set; nullptr: no node has the number.
  Subtree* owner_of(const TreeVersion& version, Ino ino);
  void trim() { files_.trim(); }

 private:
  VersionFiles& versions_;  // serves the large published files
  DatasetFiles files_{versions_};
  PublishedDirs published_{files_};
  RecordDirs records_{files_};
  ContainerDirs containers_{files_};
};

}  // namespace weft

// Which files a publish of a data set takes, without a row in memory for each small one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "publish/gather.h"
#include "weft/result.h"

namespace weft {

struct DatasetSources {
  // By role, then path: files of their own, bundles in their order, and the file table (weft/manifest.h). The last two
  // are files in memory, which open() makes: bundles each once, in order.
  std::vector<SourceFile> files;
  std::vector<std::string> left_out;  // a line each
};

// `paths` as gather_sources() takes them, and refuses them; two of them may not have a directory of one name. A
// lock.mdb beside a data.mdb is left out. Takes about 100 bytes a small file.
Result<DatasetSources> gather_dataset(std::span<const std::string> paths, const std::string& store_path);

}  // namespace weft

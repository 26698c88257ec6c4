// Publishes a synthetic data set.
#pragma once

#include <fcntl.h>

#include <span>
#include <string>
#include <vector>

#include "made_dataset.h"
#include "os/sys.h"
#include "weft/programs/operations.h"

namespace weft::testing {

// `area`: a directory for temporary files.
inline void publish_dataset(Store& store, const TempDir& area, const std::string& name, const DatasetSpec& spec,
                            const std::vector<std::string>& tags = {}) {
  MadeDataset made = make_dataset(spec);
  const auto import = must(store.begin_import(Durability::local));
  for (std::size_t i = 0; i < made.contents.size(); ++i) {
    const std::string path = area / "content";
    write_file(path, made.contents[i]);
    const Fd fd = must(open_file(path, O_RDONLY));
    const Range all{0, made.contents[i].size()};
    const std::span<const Range> ranges(&all, all.length == 0 ? 0 : 1);
    made.manifest.files[i].extents = must(import->add(fd.get(), path, ranges, no_progress()));
  }
  PublishRequest request;
  request.model = name;
  request.tags = tags;
  request.content = must(content_of(made.manifest));
  request.manifest = must(encode_manifest(made.manifest));
  must(import->publish(request));
}

}  // namespace weft::testing

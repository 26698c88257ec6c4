// The files of a publish before and while their content is read.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/file_ops.h"
#include "publish/gather.h"
#include "publish/mounted_files.h"
#include "weft/content.h"
#include "weft/format.h"
#include "weft/progress.h"
#include "weft/publish.h"
#include "weft/records.h"
#include "weft/result.h"
#include "weft/tree.h"

namespace weft {

// A source whose format is known and whose content is not read yet.
struct Draft {
  SourceFile source;
  struct stat seen {};
  std::vector<Range> ranges;
  std::map<std::string, std::string> shard_index;
  std::optional<ReadLease> lease;              // of one that is given, since before it was read
  std::vector<std::string> bases;              // models that it names as those that this one was made from
  const ContainerFormat* container = nullptr;  // of a data set's file that claims to be one
  std::vector<std::byte> records;              // its record table, until that is imported; none: it has no records
};

// Drafts and what they are: manifest.files[i] is drafts[i]; its ids lack digests until add_content().
struct DraftFiles {
  std::vector<Draft> drafts;
  Manifest manifest;
  std::uint64_t small_files = 0;  // of a data set, in its bundles
  std::uint64_t records = 0;      // of its containers
};

// The manifest that a publish of these files would make, but for the hashes of its extents. The store at `store_path`
// may not be among them.
Result<Manifest> draft_manifest(const std::vector<std::string>& paths, const std::string& store_path,
                                Progress& progress);

Error cancelled_import();
Result<DraftFiles> draft_files(std::vector<SourceFile> sources, Progress& progress, Formats formats = all_formats());
Result<std::string> read_source(const Draft& draft);  // the whole of a small one
Result<Architecture> draft_architecture(const DraftFiles& files);
// The indices of shards among the drafts, against the version that they will be in.
Status check_shard_indices(const DraftFiles& files, const Manifest& version);
// Reads all files once, fills in the ids, and adds the record tables of containers to the manifest. Files that
// `mounted` knows are not read. Returns how many these are.
Result<std::uint64_t> add_content(Import& import, DraftFiles& files, MountedFiles& mounted, Progress& progress);

}  // namespace weft

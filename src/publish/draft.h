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
#include "weft/model/format.h"
#include "weft/model/records.h"
#include "weft/model/tree.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// A source whose format is known and whose content is not read yet.
struct Draft {
  SourceFile source;
  struct stat seen {};
  std::vector<Range> ranges;
  std::map<std::string, std::string> shard_index;
  std::string index_remark;                    // why the index cannot be read, if that refuses nothing
  std::optional<ReadLease> lease;              // lease on a given file, taken before the first read
  std::vector<std::string> bases;              // models that the file names as its bases
  const ContainerFormat* container = nullptr;  // set if a data set's file claims to be a container
  std::vector<std::byte> records;              // its record table until the import; empty: no records
  std::vector<std::uint64_t> small_sizes;      // of a bundle: the sizes of its files
  std::shared_ptr<PlainSums> sums;             // of a file that the import reads; set by add_content()
};

// Drafts and their manifest: manifest.files[i] belongs to drafts[i]. Its ids lack digests until add_content().
struct DraftFiles {
  std::vector<Draft> drafts;
  Manifest manifest;
  std::vector<SourceFile> stored{};  // files of stored versions, which no draft is of; by path
  std::uint64_t small_files = 0;     // in the bundles of a data set
  std::uint64_t records = 0;         // in its containers
};

// Returns the manifest that a publish of these files would make, without the digests of its extents. The store at
// `store_path` must not be among the files.
Result<Manifest> draft_manifest(const std::vector<std::string>& paths, const std::string& store_path,
                                Progress& progress);

Error cancelled_import();
// Returns one draft for each file, in their order. Moves the paths of the directories into the manifest, and the files
// of stored versions into `stored`.
DraftFiles drafts_of(std::vector<SourceFile> sources);
Result<DraftFiles> draft_files(std::vector<SourceFile> sources, Progress& progress, Formats formats = all_formats());
Result<std::string> read_source(const Draft& draft);  // the whole text of a small file
Result<Architecture> draft_architecture(const DraftFiles& files);
// Checks the shard indices among the drafts against the version that will contain them. A remark about an index becomes
// metadata of its file in files.manifest.
Status check_shard_indices(DraftFiles& files, const Manifest& version);
// Reads all files once, fills in the ids and the plain SHA-256 of each, and adds the record tables of containers and
// the sums of small files to the manifest. Does not read files that `mounted` knows; returns their number.
// Errc::corrupt: a file has not the SHA-256 that its source expects.
Result<std::uint64_t> add_content(Import& import, DraftFiles& files, MountedFiles& mounted, Progress& progress);

}  // namespace weft

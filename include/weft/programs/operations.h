// Operations of the programs: publish (publish/import.cc), export (export/export.cc), load (blobs/load.cc).
// Combines formats, models and the store.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/arrival.h"
#include "weft/bytes/cold.h"
#include "weft/bytes/pack.h"
#include "weft/model/manifest.h"
#include "weft/model/relatives.h"
#include "weft/model/tree.h"
#include "weft/model/version_content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

// Returns the nearest relatives of a version, removed ones included: at most limits::kKinCountedMax in one direction,
// or limits::kKinDrawnMax in both, with the marks of a picture. Both directions means edges of either direction, so it
// includes siblings.
Result<KinGraph> kin_of(Store& store, const VersionRow& version, KinWay way);
// Returns the content of lineage/owners.tsv.
Result<std::string> owners_text(Store& store, ManifestResolver& resolver, const VersionRow& version);
// Measures the tensors that changed, have float types on both sides, and kept their shape. Reads them on all threads.
// Their packs stay open meanwhile.
Result<Norms> measure_norms(Store& store, const DiffSides& sides, const ManifestDiff& diff, Progress& progress);

// Returns a version's manifest. Resolves a bare version first, so call it while this thread holds no Snapshot. Messages
// name the version.
Result<std::shared_ptr<const ManifestReader>> manifest_of(Store& store, ManifestResolver& resolver,
                                                          const VersionRow& row);

// Returns the decoded manifest, for callers that need no tree.
Result<Manifest> load_manifest(Store& store, ManifestResolver& resolver, const VersionRow& row);

// The manifest and tree of a version, read from the store.
struct LoadedVersion {
  VersionRow row;
  std::shared_ptr<const VersionTree> tree;  // tree->manifest()
  VersionHold hold;                         // keeps the version whole
};
Result<LoadedVersion> load_version(Store& store, ManifestResolver& resolver, const VersionRow& row);

// A small file of a data set. The manifest has its bytes but not its name (FileRole::bundle).
struct SmallFile {
  std::string path;
  std::size_t bundle = 0;    // index into files_of(manifest, FileRole::bundle)
  Range bytes;               // in the bundle
  std::uint8_t execute = 0;  // as File::execute
};
// Visits the small files in the order of the file table. An empty file may have an index beyond the last bundle.
Status each_small_file(Store& store, const Manifest& manifest, const std::function<Status(const SmallFile&)>& visit);

// Reads the facts from the tables of a local version.
Result<DatasetFacts> dataset_facts(Store& store, const Manifest& manifest);

// Returns the store's view of a manifest, which publish and fsck --rebuild need. Moves the possibly long lists out of
// it. Errc::invalid: VersionTree::build() fails.
Result<VersionContent> content_of(Manifest manifest);
ContentDecoder content_decoder();

// A version is found as a parent if it shares more than this part of the new version's tensor bytes.
inline constexpr double kFindParentPart = 0.5;

// The treatment of a link in a directory of `paths` that leads to a directory, or nowhere. `refuse`: the import fails.
// `skip`: a line of left_out names it. `follow`: the contents of the directory are published; a link that leads nowhere
// is refused.
enum class Links : std::uint8_t { refuse, skip, follow };

// A file of a new version that is a file of a stored version already.
struct StoredFile {
  std::string path;     // in the new version
  std::string version;  // MODEL@N, of the same kind
  std::string from;     // the path in that version: a file without records, whose tensors each are one run of its bytes
  std::uint64_t size = 0;
};
struct ImportOptions {
  std::vector<std::string> paths;  // files, or directories whose contents go to the version's root
  // In addition to `paths`. weft does not read these bytes, so that the formats see none of them: no file that says
  // something about other files may be here, such as a config.json or an index of shards.
  std::vector<StoredFile> stored{};
  // Files below `paths` that arrive while the import reads them, each with the SHA-256 that it must have: Errc::corrupt
  // names a file with another one, and nothing is published. Outlives the import. Not for a data set. Null: none.
  ArrivingFiles* arriving = nullptr;
  Links links = Links::refuse;
  std::string name;
  bool dataset = false;  // publish a data set: files are not cut into tensors, small ones are bundled
  // MODEL[@V]: the version inherits the files of this one. The safetensors files of `paths` hold only the tensors that
  // differ, and other files replace those of their path. "": `paths` are the whole version.
  std::string inherit;
  Take take = Take::copy;  // of all files; the caller removes those that it moves (ImportReport::moved)
  // Durability::memory needs a weftd, which writes the version to the disk. A process without one publishes to the
  // disk.
  Durability durability = Durability::local;
  bool add = false;  // with `inherit`: allow tensors and files that the base lacks, other types and shapes
  std::vector<std::string> parents;  // MODEL[@V]
  // If neither `parents` nor the files name a stored parent: the part of the tensor bytes, from 0 to 1, that a version
  // must share to become the parent. None: no search.
  std::optional<double> find_parent = kFindParentPart;
  std::vector<std::string> tags;
  std::string message;
  std::string default_message;  // of a version that `message` does not describe; nobody misses it
  Provenance source = {};       // as VersionRow
  std::vector<std::pair<std::string, std::string>> metrics;
  std::uint64_t keep = 0;  // afterwards, remove untagged versions older than the newest `keep`; 0: none
  Author by = {};          // as PublishRequest
};
// A file or an empty directory of an import with Take::move. `found` is the entry itself, before its content was read.
struct MovedSource {
  std::string where;  // its place on disk, as SourceFile
  bool directory = false;
  struct stat found {};
};
struct ImportReport {
  PublishOutcome outcome;
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
  std::uint64_t logical_bytes = 0;
  std::uint64_t records = 0;          // in a data set's containers
  std::vector<std::string> left_out;  // a line for each entry that is left out
  std::vector<MovedSource> moved;     // for remove_moved()
  std::uint64_t mounted_files = 0;    // files of `paths` that a mount of this store shows: not read
  std::vector<std::string> remarks;   // a line for each file that is published and contradicts another one
  // Lists what the newest version, which has this content already, lacks: "message", "source", "metric loss".
  // Its tags are set.
  std::vector<std::string> not_kept;
  // With ImportOptions::keep, set by the caller of run_import(): the versions that were removed, and why others were
  // not ("": all were).
  std::vector<VersionName> removed;
  std::string not_removed;
};
// An import that has passed every check that needs neither the store nor the files' content.
class PreparedImport {
 public:
  struct State;
  explicit PreparedImport(std::unique_ptr<State> state);
  ~PreparedImport();
  PreparedImport(PreparedImport&&) noexcept;
  PreparedImport& operator=(PreparedImport&&) noexcept;
  State& state() { return *state_; }
  std::uint64_t size() const;  // number of its tensors and files, to which its memory is proportional

 private:
  std::unique_ptr<State> state_;
};
// Finds the files and reads their headers, once. The store in `store_path` need not exist yet.
Result<PreparedImport> prepare_import(const ImportOptions& options, const std::string& store_path, Progress& progress);
// Publishes an import; empty: Import::publish.
using Publish = std::function<Result<PublishOutcome>(Import&, const PublishRequest&)>;
// All or nothing: after bad input, a changing source, a full disk or a cancel, it returns an error and the store is
// unchanged. Of inherited bytes it reads a config.json if the architecture must be computed again, and files with some
// changed tensors for their plain SHA-256, if they are on this node.
Result<ImportReport> run_import(Store& store, ManifestResolver& resolver, PreparedImport import, Progress& progress,
                                const Publish& publish = {});

struct ExportReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};
// Writes the published files below `directory`, which is empty or does not exist (but its parent does). Verifies every
// extent against its digest. The files appear by rename once all are durable. A failed or cancelled export removes the
// inodes that it made and nothing else, whatever other users rename or replace below `directory` meanwhile.
Result<ExportReport> export_version(Store& store, ManifestResolver& resolver, std::string_view spec,
                                    const std::string& directory, Progress& progress);
// The same of the directory that safetensors/ of a mount shows of the version (weft/model/safetensors_view.h).
// Errc::invalid: the version is a data set's.
Result<ExportReport> export_as_safetensors(Store& store, ManifestResolver& resolver, std::string_view spec,
                                           const std::string& directory, Progress& progress);

struct HubExportReport {
  ExportReport written;
  std::string repository;          // the directory of the model or data set
  std::string commit;              // the snapshot's name
  std::vector<std::string> refs;   // files in refs/ that lead to the commit now
  std::uint64_t reused_files = 0;  // without a copy: files whose bytes are there already, also for another file
  std::uint64_t reused_bytes = 0;
};
// Adds the version to `cache`, a cache of the Hugging Face hub, which is made if its parent exists. The commit is the
// version's source commit, or else commit_of(). Refs that lead to it afterwards: the version's tags and number, and
// `main` if the store's `main` is this version or the cache has none. A snapshot appears whole. Verifies what it writes
// as export_version() does, and does not read a blob that is there. Errc::invalid: the hub refuses the model's name.
// Errc::exists: the cache has another snapshot of this commit.
Result<HubExportReport> export_to_hub(Store& store, ManifestResolver& resolver, std::string_view spec,
                                      const std::string& cache, Progress& progress);

}  // namespace weft

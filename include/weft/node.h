// What the programs do: publish, export, look up. Joins format, model and store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/kin.h"
#include "weft/manifest.h"
#include "weft/pack.h"
#include "weft/progress.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/snapshot.h"
#include "weft/store.h"
#include "weft/tree.h"
#include "weft/version_content.h"

namespace weft {

// "MODEL[@V]" against a snapshot: V a number, a tag, "latest" or nothing (latest). Removed versions are not_found; the
// message names what there is.
Result<VersionRow> resolve_version(Snapshot& snapshot, std::string_view spec);

// The same, but a number may be that of a removed version.
Result<VersionRow> resolve_or_tombstone(Snapshot& snapshot, std::string_view spec);

// The nearest kin of a version, removed ones too: of one way up to limits::kKinCountedMax, of both (by edges of either
// way, so with siblings) up to limits::kKinDrawnMax.
Result<KinGraph> kin_of(Store& store, const VersionRow& version, KinWay way);
// As lineage/owners.tsv.
Result<std::string> owners_text(Store& store, const VersionRow& version);
// Of the tensors that changed, are of float types on both sides, and kept their shape. Reads them by all threads; their
// packs stay locked meanwhile.
Result<Norms> measure_norms(Store& store, const DiffSides& sides, const ManifestDiff& diff, Progress& progress);

// A version's manifest; one that is not here is fetched first, as Store::look does. Messages name the version.
Result<std::shared_ptr<const ManifestReader>> manifest_of(Store& store, const VersionRow& row);

// The same, decoded: enough for what shows no tree.
Result<Manifest> load_manifest(Store& store, const VersionRow& row);

// A version's manifest and tree, read from the store.
struct LoadedVersion {
  VersionRow row;
  std::shared_ptr<const VersionTree> tree;  // tree->manifest()
  VersionHold hold;                         // the version stays whole while this is used
};
Result<LoadedVersion> load_version(Store& store, const VersionRow& row);
VersionFacts facts_of(const VersionRow& row);

// A small file of a data set: the manifest has its bytes and not its name (FileRole::bundle).
struct SmallFile {
  std::string path;
  std::size_t bundle = 0;  // among files_of(manifest, FileRole::bundle)
  Range bytes;             // of the bundle
};
// Each in the file table's order. Files without bytes may name a bundle that is not there.
Status each_small_file(Store& store, const Manifest& manifest, const std::function<Status(const SmallFile&)>& visit);

// Read from the tables of a version that is local.
Result<DatasetFacts> dataset_facts(Store& store, const Manifest& manifest);

// The store's view of a manifest: what publish and fsck --rebuild need. Takes its lists, which may be long, out of it.
// Errc::invalid where VersionTree::build() fails.
Result<VersionContent> content_of(Manifest manifest);
ContentDecoder content_decoder();

// A parent is found when it shares more than this part of the version's tensor bytes: most of them.
inline constexpr double kFindParentPart = 0.5;

struct ImportOptions {
  std::vector<std::string> paths;  // files, or directories whose contents go to the version's root
  std::string name;
  bool dataset = false;  // the version is one of a data set: its files are not cut into tensors, small ones are bundled
  // MODEL[@V]: the version has this one's files, and the safetensors files of `paths` hold only the tensors that
  // differ; other files take the place of those of their path. "": `paths` are the version.
  std::string inherit;
  // The files become the store's where the file system lets them, instead of being copied; the caller removes them.
  bool move = false;
  bool linked = false;  // with `move`: each may have one other name, which stays; nobody writes by it
  // Durability::memory needs a weftd, which takes the version to the disk; a process alone publishes to the disk.
  Durability durability = Durability::local;
  bool add = false;                  // inheriting: tensors and files that the base lacks, other types and shapes
  std::vector<std::string> parents;  // MODEL[@V]
  // When neither these nor the files name a stored parent: how large a part of the tensor bytes a version must share to
  // be taken for one, from 0 to 1. None: nobody is looked for.
  std::optional<double> find_parent = kFindParentPart;
  std::vector<std::string> tags;
  std::string message;
  std::vector<std::pair<std::string, std::string>> metrics;
  std::uint64_t keep = 0;  // untagged versions older than so many of the model are removed afterwards; 0: none is
};
struct ImportReport {
  PublishOutcome outcome;
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
  std::uint64_t logical_bytes = 0;
  std::uint64_t records = 0;          // of a data set's containers
  std::vector<std::string> left_out;  // lines on files that a data set leaves out
  std::uint64_t mounted_files = 0;    // published files of this store, given by a mount of it: not read
};
// An import whose every check that needs neither the store nor the files' content is passed.
class PreparedImport {
 public:
  struct State;
  explicit PreparedImport(std::unique_ptr<State> state);
  ~PreparedImport();
  PreparedImport(PreparedImport&&) noexcept;
  PreparedImport& operator=(PreparedImport&&) noexcept;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};
// Finds the files and reads their headers, once. `store_path` need not be there yet.
Result<PreparedImport> prepare_import(const ImportOptions& options, const std::string& store_path, Progress& progress);
// Makes the version of what was imported; empty: Import::publish.
using Publish = std::function<Result<PublishOutcome>(Import&, const PublishRequest&)>;
// All or nothing. Bad input, a changing source, a full disk, a cancel: an error, and the store is as it was. Of what
// is inherited nothing is read, but a config.json where the architecture has to be found anew.
Result<ImportReport> run_import(Store& store, PreparedImport import, Progress& progress, const Publish& publish = {});
Result<ImportReport> import_paths(Store& store, const ImportOptions& options, Progress& progress);  // both

struct ExportReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};
// Writes the published files below `directory`, which must be empty or not there (its parent must be there). Every
// extent is verified against its digest on the way. The files appear by rename once all are durable. A failed or
// cancelled export removes the inodes that it made and nothing else, whatever other users rename or replace below
// `directory` meanwhile.
Result<ExportReport> export_version(Store& store, std::string_view spec, const std::string& directory,
                                    Progress& progress);

}  // namespace weft

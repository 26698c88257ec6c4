// The files of a commit that a store has already.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/client/http_client.h"
#include "hub/hub_listing.h"
#include "reading/cold_file.h"
#include "weft/bytes/cold.h"
#include "weft/result.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// Returns the version of this name that was published from the commit and has exactly these files, sorted by path, by
// their paths, sizes and digests. Files whose digest the version lacks are read; one of the commit's path and size is
// believed if this node lacks its bytes. Without a commit, returns the newest version if it has these files, which then
// all have a SHA-256. Nothing if there is none.
Result<std::optional<VersionRow>> version_of_commit(Store& store, ManifestResolver& resolver, const std::string& name,
                                                    const std::string& commit, std::span<const HubFile> files);

// A file of a stored version with the content of a file of the commit.
struct KnownFile {
  std::string path;     // in the commit
  std::string version;  // MODEL@N
  std::string from;     // the path in the version
  std::uint64_t size = 0;
  std::vector<ColdBlob> blobs;  // that contain the bytes, from `skip` on
  std::uint64_t skip = 0;
  bool is_reusable = false;  // as ImportOptions::stored; else the import has to read a copy
};

struct KnownQuery {
  std::string name;  // of the new version
  VersionKind kind = VersionKind::model;
  std::span<const HubFile> files;  // sorted by path
};
// Returns the known files, sorted by path. Files in LFS are found by their SHA-256. A file without SHA-256, here or
// there, is found by its path and size in a version of the same name, and its stored bytes are read and hashed.
//
// No index has the SHA-256 of files, so the manifests of live versions are read: the newest of this name, then the
// newest of the others, until all files are found or a bound is reached. In a cluster, the last ones are those of other
// names whose manifests `reads` has to fetch: 64 at most, those of pulled versions first, and none after one that no
// node gives.
//
// A file in LFS whose bytes are on other nodes is known if `reads` gives a byte of its version that this node lacks.
// Once `reads` has not given such a byte, only files whose bytes are on this node are known.
Result<std::vector<KnownFile>> known_files(Store& store, ColdReads& reads, const KnownQuery& query);

// Gives the sink the stored bytes. `reads` fetches those that this node lacks; null: Errc::absent then. The caller
// verifies them.
Status read_known(Store& store, ColdReads* reads, const KnownFile& known, const ByteSink& sink);

}  // namespace weft

// Bundles (bundle/create.cc, bundle/import.cc): chosen versions of a store, in one file or in a directory. Another
// store takes them over with their numbers, tags, texts, times and parents. weft-store.5 describes the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/bytes/cold.h"
#include "weft/programs/operations.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

class Fd;           // os/sys.h
struct BundleList;  // diskformat/bundle_list.h

struct BundleOptions {
  std::vector<std::string> specs;  // MODEL[@V]; with `all` or `tagged` also MODEL alone for several versions
  bool all = false;                // takes all versions of the models; without a spec, of the store
  bool tagged = false;             // the models and the store as with `all`, but only tagged versions
  std::string since;               // an earlier bundle of this store: leaves out bytes that it has; "": none
  bool directory = false;          // makes a directory, not a file
};
struct BundleReport {
  std::string uuid;
  std::uint64_t versions = 0, tags = 0, blobs = 0, bytes = 0;  // without removed versions
};
// Writes a bundle to `path`, which must not exist, or a file to standard output if `path` is "-". It appears by a
// rename, complete and synced. Verifies every byte that it reads. Errc::exists; Errc::absent: bytes are not on this
// node; Errc::cancelled.
Result<BundleReport> create_bundle(Store& store, ManifestResolver& resolver, const BundleOptions& options,
                                   const std::string& path, Progress& progress);

// Opens a file of a bundle by its name: "" is the bundle itself if it is one file, "weft-bundle" the list in a
// directory. The files belong to somebody else: what they hold is hostile.
struct BundleFiles {
  std::string where;       // for messages
  bool directory = false;  // the bundle is a directory
  std::function<Result<Fd>(const std::string& name)> open;
};
// Errc::not_found: there is neither a file nor a directory.
Result<BundleFiles> bundle_at(const std::string& path);
Result<std::shared_ptr<const BundleList>> read_bundle_list(const BundleFiles& files);

struct BundleImportOptions {
  std::vector<std::string> specs;  // MODEL[@V] of the bundle; none: all of it
  bool dry_run = false;            // verifies and compares, and changes nothing
  bool move_tags = false;          // moves tags that lead to other versions
};
struct BundleImportReport {
  std::string uuid;
  std::uint64_t versions = 0;     // chosen versions: the sum of the two below
  std::uint64_t imported = 0;     // versions that the store lacked; a dry run has not imported them
  std::uint64_t known = 0;        // versions that the store had
  std::uint64_t tags = 0;         // tags that were set or moved
  std::uint64_t bytes = 0;        // verified bytes of the bundle
  std::uint64_t removed = 0;      // records of removed versions that the store lacked
  std::vector<std::string> left;  // tags that lead elsewhere, and versions that one store has removed; one line each
};
// The store of an import, with the functions that change the store.
struct BundleTarget {
  Store& store;
  Publish publish;  // empty: Import::publish
  std::function<Status(std::string_view model, std::string_view tag, std::uint64_t number)> set_tag;
};
// Reads the whole bundle into the store's tmp/ and verifies it before it publishes the first version. Each version
// appears in one commit, parents first; tags follow. So an import that was interrupted has published some versions
// whole, and the next one continues behind them. A version that the store has with the same content is passed over.
// A version whose listed identity another version has gets a new identity: a forged bundle takes none over.
// Errc::exists: the store has another version of a chosen number. Errc::absent: bytes are neither in the bundle nor in
// the store. Errc::corrupt: the bundle is damaged. After these, after Errc::no_space and after Errc::cancelled before
// the first publish nothing is changed.
Result<BundleImportReport> import_bundle(const BundleTarget& target, const BundleFiles& files,
                                         const BundleImportOptions& options, Progress& progress);

}  // namespace weft

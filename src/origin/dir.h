// The files of an origin (man weft-store.5), accessed by plain system calls: each call may hang as long as the file
// system does. Another user may own the directory, so no link in it is followed and only regular files are opened.
// Several nodes write at the same time, perhaps as different users: file names are unique or derived from the content,
// and files appear by rename, complete and synced. Nothing is locked. Files are deleted by collections alone
// (origin/collect.h), and changed by two commands: `weft restore --registry` changes the cluster in weft-origin, and
// `weft fsck --origin --repair` replaces damaged files. Any thread.
//
//   weft-origin              the id of the origin, and its cluster
//   packs/<id>.pack, .toc    as in a store; the .toc is written last
//   manifests/<sha256>       as in a store
//   places/<sha256>          the places of all blobs of this manifest
//   journal/<time>-<hash>    one record each: a version, or with the ending .tag, .rm, .undelete or .note a change of
//                            one
//   freed/<sequence>         files that a collection may delete
//   tmp/                     files being written
//
// A manifest that comes back after its files were freed, or whose places change because a pack was rewritten, gets new
// names, manifests/<sha256>.<n> and places/<sha256>.<n>: a collection that was stopped may still delete the freed ones.
// A reader takes the highest n that exists.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/catalog_record.h"
#include "diskformat/origin_freed.h"
#include "diskformat/origin_places.h"
#include "diskformat/rows.h"
#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/cluster/origin.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The full path of a pack's files, for messages.
std::string origin_pack_name(const std::string& origin, PackId pack);
std::string origin_toc_name(const std::string& origin, PackId pack);

class OriginDir {
 public:
  // Opens the origin of this cluster in the directory `path`, and creates it if there is none. Errc::unsupported:
  // another format. Errc::changed: the origin of another cluster.
  static Result<OriginDir> open(const std::string& path, std::string_view cluster);

  // Opens an origin for reading, and creates nothing. Errc::not_found: there is no origin.
  static Result<OriginDir> open_existing(const std::string& path);

  // Opens the origin with this id, or any if `uuid` is empty, and creates nothing. Errc::changed: the directory has no
  // origin, another one, or one of another cluster.
  static Result<OriginDir> open_known(const std::string& path, std::string_view uuid, std::string_view cluster);

  const std::string& path() const { return path_; }
  const std::string& uuid() const { return info_.uuid; }
  const std::string& cluster() const { return info_.cluster; }
  Result<SafePath> directory() const;  // opened anew, for deletions
  // The list of freed files that this object knows: the newest one when it was opened, or a later one.
  const FreedFiles& freed() const { return *freed_; }
  // Makes sure that freed() has this sequence or a later one. Errc::not_found: the list cannot be seen here (yet).
  Status know_freed(std::uint64_t sequence);
  void know(FreedFiles freed) { freed_ = std::make_shared<const FreedFiles>(std::move(freed)); }  // exactly this list

  // Changes the origin's cluster. Nodes of the previous cluster are refused afterwards.
  Status take_over(std::string_view cluster);

  // Reading. Errc::not_found if the file is missing (yet), Errc::corrupt if its bytes do not match its name.
  Result<std::vector<std::byte>> manifest(const Digest& digest) const;
  Result<Places> places(const Digest& manifest) const;
  // True if the manifest is whole, its places too, and all their packs are there, all in files that no collection may
  // delete. Does not read the packs.
  bool holds(const Digest& manifest) const;
  Result<std::vector<std::string>> events() const;             // names of the journal's records, sorted by time
  Result<CatalogRecord> event(const std::string& name) const;  // errors as decode_catalog_event()
  Result<std::vector<PackId>> packs() const;                   // packs with a table of contents
  Result<PackToc> toc(PackId pack) const;
  Result<Fd> open_pack(PackId pack) const;

  // Writing. No error if the file exists already; then it stays as it is, except that put_places() replaces places that
  // lead to packs that are gone.
  //
  // Copies the blobs that `toc` lists from `pack`, a descriptor of a store's pack, and verifies them. The origin may
  // have a .toc already that lists more blobs. `gate`: as for copy_pack().
  Status put_pack(const PackToc& toc, int pack, Progress& progress, PaceGate* gate = nullptr) const;
  Status put_manifest(const Digest& digest, std::span<const std::byte> bytes) const;
  Status put_places(const Places& places) const;
  Status put_event(const CatalogEvent& event,
                   std::string_view cluster) const;  // `cluster`: of the registry; used for tags only

  Result<OriginTotals> totals() const;

 private:
  OriginDir(std::string path, OriginInfo info) : path_(std::move(path)), info_(std::move(info)) {}
  // Reads the newest of the names of a file by calling read(path).
  template <class Read>
  auto read_named(const std::string& folder, const Digest& digest, const Read& read) const
      -> decltype(read(std::declval<const SafePath&>()));
  bool has_packs(const Places& places) const;
  Status lay_out(std::string_view cluster) const;
  Status check_owner(std::string_view cluster) const;
  Result<SafePath> write_fresh(const SafePath& origin, std::span<const std::byte> bytes) const;
  static SafePath fresh(const SafePath& origin);  // a path below tmp/
  static Status appear(const SafePath& fresh, const SafePath& file);
  static Status appear_first(const SafePath& fresh, const SafePath& file);
  Status put(const std::string& folder, const std::string& name, std::span<const std::byte> bytes,
             bool replace = false) const;
  std::string path_;
  OriginInfo info_;
  std::shared_ptr<const FreedFiles> freed_ = std::make_shared<const FreedFiles>();
};

// Returns a value that is read once and then kept in `all`; null if it cannot be read.
template <class Key, class Value, class Read>
const Value* read_once(std::map<Key, std::optional<Value>>& all, const Key& key, const Read& read) {
  auto [at, fresh] = all.try_emplace(key);
  if (fresh)
    if (auto got = read(); got.ok()) at->second = std::move(got).value();
  return at->second ? &*at->second : nullptr;
}

}  // namespace weft

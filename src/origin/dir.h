// The files of an origin (man weft-store.5), by plain system calls: any of them may hang as long as the file system
// does. Another user may own the directory: no link in it is followed, and nothing but regular files is opened. Files
// of several owners lie there, as several nodes write at once: names are unique or name their content, and files appear
// by rename, whole and synced; nothing is locked, changed or removed, but that `weft restore --registry` gives
// weft-origin another cluster. Any thread.
//
//   weft-origin              which origin this is, and of which cluster
//   packs/<id>.pack, .toc    as in a store; the .toc last
//   manifests/<sha256>       as in a store
//   places/<sha256>          where the blobs of this manifest lie
//   journal/<time>-<hash>    what was said, one record each: versions, and with endings .tag and .rm tags and removals
//   tmp/                     what is being written
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/places.h"
#include "diskformat/rows.h"
#include "diskformat/said_record.h"
#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/content.h"
#include "weft/origin.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The full path of a pack's files, for messages.
std::string origin_pack_name(const std::string& origin, PackId pack);
std::string origin_toc_name(const std::string& origin, PackId pack);

class OriginDir {
 public:
  // The origin of this cluster. `path` must be a directory; what is missing of the layout is made. Errc::unsupported:
  // another format. Errc::changed: the origin of another cluster.
  static Result<OriginDir> open(const std::string& path, std::string_view cluster);

  // Only to read: makes nothing. Errc::not_found: no origin is there.
  static Result<OriginDir> open_existing(const std::string& path);

  // The one of this id, or with "" any: makes nothing. Errc::changed: none is there, or another, or another cluster's.
  static Result<OriginDir> open_known(const std::string& path, std::string_view uuid, std::string_view cluster);

  const std::string& path() const { return path_; }
  const std::string& uuid() const { return info_.uuid; }
  const std::string& cluster() const { return info_.cluster; }
  // It is this cluster's from now on: nodes of the one that it belonged to are refused.
  Status take_over(std::string_view cluster);

  // Reading. Errc::not_found when it is not there (yet), Errc::corrupt when it is not what its name says.
  Result<std::vector<std::byte>> manifest(const Digest& digest) const;
  Result<Places> places(const Digest& manifest) const;
  Result<std::vector<Digest>> placed() const;              // the manifests of all places
  Result<std::vector<std::string>> said() const;           // names of the journal's records, by time
  Result<SaidRecord> said(const std::string& name) const;  // errors as decode_said()
  Result<std::vector<PackId>> packs() const;               // that have a table of contents
  Result<PackToc> toc(PackId pack) const;
  Result<Fd> open_pack(PackId pack) const;

  // Writing; each is fine when it is there already.
  // `toc` says which bytes of `pack`, a descriptor of a pack of a store, are copied; they are verified on the way.
  // Those that the origin's pack has already stay as they are: its .toc may list more than this one.
  Status put_pack(const PackToc& toc, int pack, Progress& progress) const;
  Status put_manifest(const Digest& digest, std::span<const std::byte> bytes) const;
  Status put_places(const Places& places) const;
  Status put_said(const Said& said, std::string_view cluster) const;  // of this cluster's registry

  Result<OriginTotals> totals() const;

 private:
  OriginDir(std::string path, OriginInfo info) : path_(std::move(path)), info_(std::move(info)) {}
  Status lay_out(std::string_view cluster) const;
  Status check_owner(std::string_view cluster) const;
  Result<SafePath> directory() const;
  Result<SafePath> write_fresh(const SafePath& origin, std::span<const std::byte> bytes) const;
  static SafePath fresh(const SafePath& origin);  // a path below tmp/
  static Status appear(const SafePath& fresh, const SafePath& file);
  Status put(const std::string& folder, const std::string& name, std::span<const std::byte> bytes) const;
  std::string path_;
  OriginInfo info_;
};

}  // namespace weft

#include "origin/dir.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "diskformat/pack_names.h"
#include "diskformat/record.h"
#include "origin/copy.h"
#include "origin/deletions.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 6> kFolders = {"packs", "manifests", "places", "journal", "freed", "tmp"};

Error of_origin(const std::string& path, const Error& error) {
  return Error{error.code, fmt::format("origin {}: {}", path, error.message)};
}

Result<OriginInfo> read_identity(const std::string& path) {
  WEFT_TRY(Beneath directory, Beneath::open(path));
  const SafePath file = SafePath(std::move(directory)) / "weft-origin";
  WEFT_TRY(const auto record, read_file(file, limits::kOriginIdentityMax));
  WEFT_TRY(const auto payload, open_record(RecordKind::origin, record, file));
  return decode_row<OriginInfo>(payload, file);
}

std::uint64_t disk_bytes(const SafePath& path) {
  const auto st = stat_file(path);
  return st.ok() ? static_cast<std::uint64_t>(st->st_blocks) * 512 : 0;
}

}  // namespace

std::string origin_pack_name(const std::string& origin, PackId pack) {
  return fmt::format("{}/packs/{}.pack", origin, pack_name(pack));
}

std::string origin_toc_name(const std::string& origin, PackId pack) {
  return fmt::format("{}/packs/{}.toc", origin, pack_name(pack));
}

Result<OriginDir> OriginDir::open(const std::string& path, std::string_view cluster) {
  if (const auto st = stat_file(path); !st.ok()) return of_origin(path, st.error());
  auto info = read_identity(path);
  OriginDir dir(path, {});
  if (!info.ok() && info.error().code == Errc::not_found) {
    WEFT_CHECK(dir.lay_out(cluster));
    info = read_identity(path);
  }
  if (!info.ok()) return of_origin(path, info.error());
  dir.info_ = std::move(info).value();
  WEFT_CHECK(dir.check_owner(cluster));
  WEFT_CHECK(dir.know_freed(0));
  return dir;
}

// If several nodes create an origin at the same time, the first one sets its id. weft-origin appears by a hard link:
// shared file systems have no rename that fails if the target exists.
Status OriginDir::lay_out(std::string_view cluster) const {
  WEFT_TRY(const SafePath origin, directory());
  for (const std::string_view name : kFolders) WEFT_CHECK(make_directories(origin / name));
  const OriginInfo info{kOriginFormat, random_hex(16), std::string(cluster), now_ns()};
  WEFT_TRY(const SafePath fresh, write_fresh(origin, seal_record(RecordKind::origin, encode_row(info))));
  const Status linked = link_file(fresh, origin / "weft-origin");
  WEFT_CHECK(remove_file(fresh));
  if (!linked.ok() && linked.error().code != Errc::exists) return of_origin(path_, linked.error());
  return sync_directory(origin);
}

Status OriginDir::check_owner(std::string_view cluster) const {
  if (info_.cluster == cluster) return {};
  return Error{Errc::changed,
               fmt::format("origin {}: expected an origin of cluster {}, got that of cluster {}; each cluster needs a "
                           "directory of its own, and `weft restore --registry` takes over that of one that is lost",
                           path_, printable(cluster), printable(info_.cluster))};
}

Status OriginDir::take_over(std::string_view cluster) {
  if (info_.cluster == cluster) return {};
  WEFT_TRY(const SafePath origin, directory());
  OriginInfo info = info_;
  info.cluster = cluster;
  WEFT_TRY(const SafePath fresh, write_fresh(origin, seal_record(RecordKind::origin, encode_row(info))));
  WEFT_CHECK(rename_file(fresh, origin / "weft-origin"));
  WEFT_CHECK(sync_directory(origin));
  info_ = std::move(info);
  return {};
}

Result<OriginDir> OriginDir::open_existing(const std::string& path) {
  const auto info = read_identity(path);
  if (!info.ok() && (info.error().code == Errc::not_found || info.error().code == Errc::not_dir))
    return Error{Errc::not_found, fmt::format("{}: no origin here: expected a file weft-origin", path)};
  if (!info.ok()) return of_origin(path, info.error());
  OriginDir dir(path, *info);
  WEFT_CHECK(dir.know_freed(0));
  return dir;
}

Status OriginDir::know_freed(std::uint64_t sequence) {
  if (sequence != 0 && freed_->sequence >= sequence) return {};
  WEFT_TRY(const SafePath origin, directory());
  auto read = read_freed(origin, sequence);
  if (!read.ok()) return of_origin(path_, read.error());
  if (read->sequence < sequence)
    return Error{Errc::not_found,
                 fmt::format("origin {}: expected the list {} of a collection, got none; nothing is written there "
                             "until this node sees it",
                             path_, freed_name(sequence))};
  freed_ = std::make_shared<const FreedFiles>(std::move(read).value());
  return {};
}

// A directory without an origin is most often the mount point of an unmounted file system. Publishes written there
// would reach no other node.
Result<OriginDir> OriginDir::open_known(const std::string& path, std::string_view uuid, std::string_view cluster) {
  auto dir = open_existing(path);
  const bool none = !dir.ok() && dir.error().code == Errc::not_found && stat_file(path).ok();
  if (!dir.ok() && !none) return dir;
  if (dir.ok()) WEFT_CHECK(dir->check_owner(cluster));
  if (dir.ok() && (uuid.empty() || dir->uuid() == uuid)) return dir;
  return Error{Errc::changed,
               fmt::format("origin {}: expected the origin{} that this node knows, got {}; is its file system mounted? "
                           "`weft stage-out --new-origin` takes what is there for the origin from now on",
                           path, uuid.empty() ? "" : " " + printable(uuid),
                           none ? "none" : "the origin " + printable(dir->uuid()))};
}

// Opens the directory for each call: an open directory would keep the origin's file system from being unmounted, and
// would hide from this process a file system that is mounted there later.
Result<SafePath> OriginDir::directory() const {
  WEFT_TRY(Beneath directory, Beneath::open(path_));
  return SafePath(std::move(directory));
}

SafePath OriginDir::fresh(const SafePath& origin) {
  return origin / ("tmp/" + random_hex(12));
}

Status OriginDir::appear(const SafePath& fresh, const SafePath& file) {
  WEFT_CHECK(rename_file(fresh, file));
  return sync_directory(file.parent());
}

// If the file exists already, it stays: a collection may have seen what it says.
Status OriginDir::appear_first(const SafePath& fresh, const SafePath& file) {
  const Status linked = link_file(fresh, file);
  if (!linked.ok() && linked.error().code != Errc::exists) return linked;
  WEFT_CHECK(remove_file(fresh));
  return sync_directory(file.parent());
}

Status OriginDir::put(const std::string& folder, const std::string& name, std::span<const std::byte> bytes,
                      bool replace) const {
  WEFT_TRY(const SafePath origin, directory());
  const SafePath file = origin / folder / name;
  if (!replace && stat_file(file).ok()) return {};
  WEFT_TRY(const SafePath path, write_fresh(origin, bytes));
  Status put = replace ? appear(path, file) : appear_first(path, file);
  if (!put.ok()) static_cast<void>(remove_file(path));
  return put;
}

// Writes and syncs a file below tmp/, and returns its path.
Result<SafePath> OriginDir::write_fresh(const SafePath& origin, std::span<const std::byte> bytes) const {
  SafePath path = fresh(origin);
  WEFT_TRY(const Fd fd, open_file(path, O_WRONLY | O_CREAT | O_EXCL));
  Status written = write_exact(fd.get(), 0, bytes, path);
  if (written.ok()) written = sync_file(fd.get(), path);
  if (written.ok()) return path;
  static_cast<void>(remove_file(path));
  return of_origin(path_, written.error());
}

// If no known name exists, another node may have freed them and put the manifest again since this object was opened.
template <class Read>
auto OriginDir::read_named(const std::string& folder, const Digest& digest, const Read& read) const
    -> decltype(read(std::declval<const SafePath&>())) {
  WEFT_TRY(const SafePath origin, directory());
  const auto read_names = [&](std::uint64_t from, std::uint64_t to) {
    auto got = read(origin / folder / text_of({digest, to}));
    for (std::uint64_t n = to; n-- > from && !got.ok() && got.error().code == Errc::not_found;)
      got = read(origin / folder / text_of({digest, n}));
    return got;
  };
  const std::uint64_t known = freed_->names_of(digest);
  auto got = read_names(0, known);
  if (got.ok() || got.error().code != Errc::not_found) return got;
  const auto latest = read_freed(origin, 0);
  const std::uint64_t now = latest.ok() ? latest->names_of(digest) : 0;
  return now > known ? read_names(known + 1, now) : std::move(got);
}

Result<std::vector<std::byte>> OriginDir::manifest(const Digest& digest) const {
  return read_named("manifests", digest, [&digest](const SafePath& path) -> Result<std::vector<std::byte>> {
    WEFT_TRY(auto bytes, read_file(path, limits::kManifestMax));
    if (sha256(bytes) == digest) return bytes;
    return Error{Errc::corrupt, fmt::format("{}: its bytes do not match the digest in its name", path)};
  });
}

Result<Places> OriginDir::places(const Digest& manifest) const {
  return read_named("places", manifest, [&manifest](const SafePath& path) -> Result<Places> {
    WEFT_TRY(const auto bytes, read_file(path, limits::kRecordMax));
    return decode_places(bytes, manifest, path);
  });
}

bool OriginDir::holds(const Digest& manifest) const {
  const auto places = this->places(manifest);
  if (!places.ok() || !has_packs(*places) || !this->manifest(manifest).ok()) return false;
  const auto origin = directory();
  const std::string name = text_of({manifest, freed_->names_of(manifest)});
  return origin.ok() && stat_file(*origin / "places" / name).ok() && stat_file(*origin / "manifests" / name).ok();
}

// True if the packs of all these places are there, and no collection may delete them.
bool OriginDir::has_packs(const Places& places) const {
  const auto origin = directory();
  std::set<PackId> packs;
  for (const auto& [id, place] : places.blobs) packs.insert(place.pack);
  return origin.ok() && std::ranges::all_of(packs, [&](PackId pack) {
           return !freed_->has_pack(pack) && stat_file(toc_path(*origin, pack)).ok();
         });
}

Result<std::vector<PackId>> OriginDir::packs() const {
  WEFT_TRY(const SafePath origin, directory());
  WEFT_TRY(const auto names, list_directory(origin / "packs"));
  std::vector<PackId> packs;
  for (const std::string& name : names)
    if (const auto pack = pack_of_name(name, ".toc")) packs.push_back(*pack);
  return packs;
}

Result<PackToc> OriginDir::toc(PackId pack) const {
  WEFT_TRY(const SafePath origin, directory());
  return read_toc_of(origin, pack);
}

Result<Fd> OriginDir::open_pack(PackId pack) const {
  WEFT_TRY(const SafePath origin, directory());
  return open_file(pack_path(origin, pack), O_RDONLY);
}

Status OriginDir::put_pack(const PackToc& toc, int pack, Progress& progress, PaceGate* gate) const {
  WEFT_TRY(const SafePath origin, directory());
  if (stat_file(toc_path(origin, toc.pack)).ok()) return {};
  const SafePath path = fresh(origin);
  Status put = copy_pack(toc, pack, path, progress, nullptr, gate);
  if (put.ok()) put = appear(path, pack_path(origin, toc.pack));
  if (!put.ok()) {
    static_cast<void>(remove_file(path));
    return put;
  }
  WEFT_CHECK(this->put("packs", pack_name(toc.pack) + ".toc", encode_toc(toc)));
  // A collection deletes a pack that has had no table of contents for a day.
  const auto there = stat_file(pack_path(origin, toc.pack));
  if (!there.ok()) static_cast<void>(remove_file(toc_path(origin, toc.pack)));
  return there.ok() ? Status{} : there.error();
}

Status OriginDir::put_manifest(const Digest& digest, std::span<const std::byte> bytes) const {
  return put("manifests", text_of({digest, freed_->names_of(digest)}), bytes);
}

Status OriginDir::put_places(const Places& places) const {
  const Digest& manifest = places.manifest;
  WEFT_TRY(const SafePath origin, directory());
  const std::string name = text_of({manifest, freed_->names_of(manifest)});
  bool useless = false;
  if (stat_file(origin / "places" / name).ok()) {
    const auto known = this->places(manifest);
    useless = known.ok() ? !has_packs(*known) : known.error().code == Errc::corrupt;
  }
  return put("places", name, encode_places(places), useless);
}

Status OriginDir::put_event(const CatalogEvent& event, std::string_view cluster) const {
  return put("journal", catalog_event_name(event, cluster), encode_catalog_event(event, cluster));
}

Result<std::vector<std::string>> OriginDir::events() const {
  WEFT_TRY(const SafePath origin, directory());
  return list_directory(origin / "journal");
}

Result<CatalogRecord> OriginDir::event(const std::string& name) const {
  WEFT_TRY(const SafePath origin, directory());
  const SafePath path = origin / "journal" / name;
  WEFT_TRY(const auto bytes, read_file(path, limits::kCatalogEventMax));
  return decode_catalog_event(bytes, path);
}

Result<OriginTotals> OriginDir::totals() const {
  WEFT_TRY(const SafePath origin, directory());
  OriginTotals totals;
  WEFT_TRY(const auto packs, this->packs());
  totals.packs = packs.size();
  for (const PackId pack : packs) totals.bytes += disk_bytes(pack_path(origin, pack));
  WEFT_TRY(const auto manifests, list_directory(origin / "manifests"));
  WEFT_TRY(const auto events, list_directory(origin / "journal"));
  totals.manifests = manifests.size();
  const auto other = [](const std::string& name) { return name.find('.') != std::string::npos; };
  totals.versions = static_cast<std::uint64_t>(events.size() - std::ranges::count_if(events, other));
  return totals;
}

}  // namespace weft

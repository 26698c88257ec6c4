#include "repair/manifest_rescue.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "os/sys.h"
#include "packs/manifest_packs.h"
#include "repair/rebuild_input.h"
#include "repair/rescue.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// True if the bytes are damaged or unreadable, so that the other copy counts.
bool is_broken(const Error& error) {
  return is_damage(error) || error.code == Errc::io;
}

class ManifestRescue {
 public:
  ManifestRescue(const PackDir& packs, PackId pack, const Progress& progress)
      : packs_(packs), pack_(pack), progress_(progress) {}

  Result<FoundManifests> run() {
    WEFT_CHECK(open(packs_.pack_file(pack_)));
    WEFT_CHECK(open(packs_.copy_file(pack_)));
    found_.toc.pack = pack_;
    for (const Copy& copy : copies_) found_.toc.size = std::max(found_.toc.size, copy.size);
    WEFT_CHECK(take_listed());
    for (const Copy& copy : copies_) WEFT_CHECK(take_scanned(copy));
    WEFT_CHECK(check_all());
    return std::move(found_);
  }

 private:
  struct Copy {
    SafePath path;
    Fd fd;  // invalid if the file is gone
    std::uint64_t size = 0;
  };

  Status open(SafePath path) {
    WEFT_TRY(auto file, if_there(open_with_stat(path, O_RDONLY)));
    Copy copy{std::move(path), {}, 0};
    if (file) {
      copy.fd = std::move(file->fd);
      copy.size = static_cast<std::uint64_t>(file->st.st_size);
    }
    copies_.push_back(std::move(copy));
    return {};
  }

  // Takes the entries of the table of contents, or what is readable of a damaged one.
  Status take_listed() {
    auto toc = packs_.toc(pack_);
    if (toc.ok()) {
      found_.toc = *std::move(toc);
      std::erase_if(found_.toc.entries, [](const PackEntry& entry) { return !names_manifest(entry); });
      return {};
    }
    if (!is_damage(toc.error())) return std::move(toc).error();
    found_.lists_more = true;
    WEFT_TRY(const std::vector<PlacedBlob> rows, salvaged_rows(packs_, pack_));
    for (const PlacedBlob& row : rows)
      for (const Copy& copy : copies_)
        if (copy.fd.valid()) take(entry_at(copy.fd.get(), row.offset, row.id.length, copy.path), row.id);
    return {};
  }

  void take(Result<PackEntry> entry, const ContentId& id) {
    if (entry.ok() && entry->id == id) add(*std::move(entry));
  }

  // Adds an entry that overlaps no other one.
  void add(PackEntry entry) {
    std::vector<PackEntry>& entries = found_.toc.entries;
    if (!names_manifest(entry) || overlaps_any(entries, {entry.offset, entry.id.length})) return;
    found_.lists_more = true;
    found_.toc.size = std::max(found_.toc.size, entry.offset + entry.id.length);
    entries.insert(std::ranges::upper_bound(entries, entry.offset, {}, &PackEntry::offset), std::move(entry));
  }

  Status take_scanned(const Copy& copy) {
    if (!copy.fd.valid()) return {};
    auto entries = scan_manifests(copy.fd.get(), copy.size, copy.path);
    if (!entries.ok()) return is_broken(entries.error()) ? Status{} : Status{std::move(entries).error()};
    for (PackEntry& entry : *entries) add(std::move(entry));
    return {};
  }

  Status check_all() {
    for (const PackEntry& entry : found_.toc.entries) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
      bool any = false;  // a copy has the manifest
      bool all = true;   // each copy has its whole record
      for (const Copy& copy : copies_) {
        const Status there = copy.fd.valid() ? check_record(copy.fd.get(), entry, copy.path) : Status{gone()};
        if (!there.ok() && !is_broken(there.error())) return there;
        all = all && there.ok();
        any = any || there.ok() || (copy.fd.valid() && has(copy, entry));
      }
      if (any) found_.whole.push_back(entry);
      if (any && !all) found_.broken.push_back(entry);
    }
    return {};
  }

  static Error gone() { return Error{Errc::not_found, "gone"}; }
  static bool has(const Copy& copy, const PackEntry& entry) {
    return read_manifest(copy.fd.get(), entry.offset, entry.id.length, manifest_digest(entry), copy.path).ok();
  }

  const PackDir& packs_;
  const PackId pack_;
  const Progress& progress_;
  std::vector<Copy> copies_;
  FoundManifests found_;
};

Result<std::vector<std::byte>> read_either(const std::array<Fd, 2>& files, const PackEntry& entry,
                                           std::string_view where) {
  const Digest& digest = manifest_digest(entry);
  auto bytes = read_manifest(files[0].get(), entry.offset, entry.id.length, digest, where);
  return bytes.ok() ? std::move(bytes) : read_manifest(files[1].get(), entry.offset, entry.id.length, digest, where);
}

}  // namespace

Result<FoundManifests> find_manifests(const PackDir& packs, PackId pack, const Progress& progress) {
  return ManifestRescue(packs, pack, progress).run();
}

Status repair_manifests(const PackDir& packs, const FoundManifests& found) {
  if (found.broken.empty()) return {};
  const std::array<SafePath, 2> paths{packs.pack_file(found.toc.pack), packs.copy_file(found.toc.pack)};
  std::array<Fd, 2> files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    WEFT_TRY(files[i], open_file(paths[i], O_RDWR | O_CREAT));
  }
  for (const PackEntry& entry : found.broken) {
    WEFT_TRY(const auto manifest, read_either(files, entry, paths[0]));
    for (std::size_t i = 0; i < files.size(); ++i)
      if (!check_record(files[i].get(), entry, paths[i]).ok())
        WEFT_CHECK(rewrite_record(files[i].get(), entry, manifest, paths[i]));
  }
  for (std::size_t i = 0; i < files.size(); ++i) WEFT_CHECK(sync_file(files[i].get(), paths[i]));
  return {};
}

}  // namespace weft

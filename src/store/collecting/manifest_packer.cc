#include "store/collecting/manifest_packer.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "index/manifests.h"
#include "index/pages.h"
#include "packs/manifest_packs.h"
#include "packs/pack_writer.h"
#include "packs/temp_area.h"

namespace weft {
namespace {

constexpr std::size_t kFilesMin = 16;  // fewer stay files: a pack is two files itself

// Returns the needed manifests that are files, without those that a prepared publish relies on.
Result<std::vector<Digest>> loose_manifests(StoreParts& parts) {
  WEFT_TRY(const std::vector<Digest> all, parts.manifests.list());
  std::vector<Digest> loose;
  RenewedTxn now(parts.index.env());
  for (const Digest& digest : all) {
    const auto st = stat_file(parts.manifests.path_of(digest));
    if (!st.ok() || static_cast<std::uint64_t>(st->st_size) > limits::kPackedManifestMax || st->st_size == 0) continue;
    if (parts.reliances.is_needed(digest) || parts.is_left_young(parts.manifests.path_of(digest))) continue;
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const std::optional<ManifestRow> row, find_manifest(*txn, digest));
    if (row) loose.push_back(digest);
  }
  return loose;
}

// Removes the files of manifests that are readable in a pack. Only gc removes manifests from packs and one gc runs at a
// time, so this needs no lock. If the pack is damaged, the file stays.
Status drop_packed_files(StoreParts& parts, std::span<const Digest> manifests) {
  for (const Digest& digest : manifests) {
    std::optional<ManifestRow> row;
    {
      WEFT_TRY(Txn txn, parts.index.read());
      WEFT_TRY(row, find_manifest(txn, digest));
    }
    if (row && row->packed() && !parts.reliances.is_needed(digest) && parts.manifests.open_packed(digest, *row).ok())
      WEFT_CHECK(parts.manifests.remove(digest));
  }
  return {};
}

// Leaves damaged files to fsck.
Status pack_some(StoreParts& parts, std::span<const Digest> manifests) {
  WEFT_TRY(const std::unique_ptr<TempArea> temp, TempArea::make(parts.path));
  WEFT_TRY(const auto pack, PackWriter::create(parts.path, temp->path(), PackKind::manifests));
  std::vector<std::pair<Digest, PackEntry>> moved;
  for (const Digest& digest : manifests) {
    const auto file = parts.manifests.open_file_of(digest);
    if (!file.ok()) continue;
    WEFT_TRY(PackEntry entry, write_manifest(*pack, digest, (*file)->bytes()));
    pack->list(entry);
    moved.emplace_back(digest, std::move(entry));
  }
  if (moved.empty()) return {};
  WEFT_CHECK(pack->sync());
  WEFT_TRY(const std::unique_ptr<BlobWriter> index, parts.blobs.write());
  WEFT_CHECK(pack->publish());
  WEFT_CHECK(sync_directory(parts.path / "packs"));
  for (const auto& [digest, entry] : moved)
    WEFT_CHECK(index->put_manifest(digest, {pack->id(), entry.offset}, entry.id.length));
  return index->commit();
}

}  // namespace

Status pack_manifests(StoreParts& parts, Progress& progress) {
  WEFT_TRY(std::vector<Digest> loose, loose_manifests(parts));
  WEFT_CHECK(drop_packed_files(parts, loose));
  std::erase_if(loose, [&parts](const Digest& digest) { return !stat_file(parts.manifests.path_of(digest)).ok(); });
  if (loose.size() < kFilesMin) return {};
  for (std::span<const Digest> rest(loose); !rest.empty();) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: gc stopped", parts.path)};
    const auto some = rest.first(std::min(limits::kBatchRows, rest.size()));
    rest = rest.subspan(some.size());
    WEFT_CHECK(pack_some(parts, some));
    WEFT_CHECK(drop_packed_files(parts, some));
  }
  return {};
}

}  // namespace weft

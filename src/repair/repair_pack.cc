#include "repair/repair_pack.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "os/sys.h"
#include "packs/blob_check.h"

namespace weft {

Result<std::unique_ptr<RepairPack>> RepairPack::create(const SafePath& store_path) {
  WEFT_TRY(std::unique_ptr<TempArea> temp, TempArea::make(store_path));
  WEFT_TRY(std::unique_ptr<PackWriter> pack, PackWriter::create(store_path, temp->path()));
  return std::unique_ptr<RepairPack>(new RepairPack(store_path, std::move(temp), std::move(pack)));
}

Status RepairPack::add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where,
                       const Progress& progress) {
  if (std::ranges::find(blobs_, id, &NewBlob::id) != blobs_.end()) return {};
  const std::uint64_t to = pack_->reserve(id.length, offset);
  auto entry = copy_hashed(id, fd, offset, where, *pack_, to, progress);
  if (entry.ok() && !root_agrees(*entry))
    entry = Error{Errc::corrupt, fmt::format("{}: expected the {} bytes with digest {} at {}, got others", where,
                                             id.length, to_hex(id.root), offset)};
  if (!entry.ok() && entry.error().code == Errc::cancelled)
    entry = Error{Errc::cancelled, fmt::format("{}: repair stopped", store_path_)};
  if (!entry.ok()) {
    pack_->give_back(to);
    return std::move(entry).error();
  }
  blobs_.push_back({id, {pack_->id(), to}, entry->hint, true});
  pack_->list(*std::move(entry));
  return {};
}

Status RepairPack::sync() {
  WEFT_CHECK(pack_->begin_sync());
  return pack_->sync();
}

Status RepairPack::place() {
  WEFT_CHECK(pack_->publish());
  return sync_directory(packs_dir(store_path_));
}

}  // namespace weft

#include "repair/repair_pack.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "os/sys.h"
#include "packs/blob_check.h"

namespace weft {
namespace {

constexpr std::uint64_t kStep = 4 * kDigestChunk;

}  // namespace

Result<std::unique_ptr<RepairPack>> RepairPack::create(const SafePath& store_path) {
  WEFT_TRY(std::unique_ptr<TempArea> temp, TempArea::make(store_path));
  WEFT_TRY(std::unique_ptr<PackWriter> pack, PackWriter::create(store_path, temp->path()));
  return std::unique_ptr<RepairPack>(new RepairPack(store_path, std::move(temp), std::move(pack)));
}

Status RepairPack::add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where,
                       const Progress& progress) {
  if (std::ranges::find(blobs_, id, &NewBlob::id) != blobs_.end()) return {};
  const std::uint64_t to = pack_->reserve(id.length, offset);
  auto entry = copy(id, fd, offset, to, where, progress);
  if (!entry.ok()) {
    pack_->give_back(to);
    return std::move(entry).error();
  }
  blobs_.push_back({id, {pack_->id(), to}, entry->hint, true});
  pack_->list(*std::move(entry));
  return {};
}

// Copies and verifies a blob. Hashes the bytes in the buffer from which they are written.
Result<PackEntry> RepairPack::copy(const ContentId& id, int fd, std::uint64_t offset, std::uint64_t to,
                                   std::string_view where, const Progress& progress) {
  PackEntry entry{id, to, std::vector<Digest>(chunk_count(id.length)), 0};
  std::vector<std::byte> buffer(std::min(id.length, kStep));
  for (std::uint64_t done = 0; done < id.length;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: repair stopped", store_path_)};
    const auto piece = std::span(buffer).first(std::min(kStep, id.length - done));
    WEFT_CHECK(read_exact(fd, offset + done, piece, where));
    sha256_chunks(piece, std::span(entry.chunks).subspan(done / kDigestChunk, chunk_count(piece.size())));
    if (done == 0 && id.length > kDigestChunk) entry.hint = xxh3_64(piece.first(kDigestChunk));
    WEFT_CHECK(pack_->write(to + done, piece));
    done += piece.size();
  }
  if (root_agrees(entry)) return entry;
  return Error{Errc::corrupt, fmt::format("{}: expected the {} bytes with digest {} at {}, got others", where,
                                          id.length, to_hex(id.root), offset)};
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

#include "packs/unsynced.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/blob_check.h"
#include "packs/toc_cache.h"

namespace weft {
namespace {

// Larger pieces delay other processes' syncs, smaller ones slow down the whole.
constexpr std::uint64_t kPiece = 16U << 20U;  // bytes

Status write_pieces(int fd, std::uint64_t size, const FlushPace& pace) {
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    WEFT_CHECK(pace());
    write_back(fd, at, std::min(kPiece, size - at));
  }
  return pace();
}

// Removes the entries whose bytes are damaged from `toc` and returns them.
Result<std::vector<PackEntry>> take_lost(int fd, PackToc& toc, const SafePath& where, const FlushPace& pace) {
  std::vector<PackEntry> lost, whole;
  std::uint64_t since = 0;
  for (PackEntry& entry : toc.entries) {
    Status kept;
    const auto keep_pace = [&](std::uint64_t /*offset*/, std::span<const std::byte> bytes) -> Status {
      since += bytes.size();
      if (since < kPiece) return {};
      since = 0;
      return kept = pace();
    };
    const Status checked = check_blob(fd, where, entry, no_progress(), keep_pace);
    WEFT_CHECK(std::move(kept));
    (checked.ok() ? whole : lost).push_back(std::move(entry));
  }
  toc.entries = std::move(whole);
  return lost;
}

Result<std::vector<PackEntry>> make_durable(const SafePath& path, PackToc& toc, const FlushPace& pace) {
  // A read-only descriptor suffices for a sync, and does not break a lease on the file.
  WEFT_TRY(auto fd, if_there(open_file(path, O_RDONLY)));
  if (!fd) return std::exchange(toc.entries, {});
  WEFT_TRY(const struct stat st, stat_fd(fd->get(), path));
  std::vector<PackEntry> lost;
  if (toc.boot == boot_id()) {
    WEFT_CHECK(write_pieces(fd->get(), toc.size, pace));
  } else {
    WEFT_TRY(lost, take_lost(fd->get(), toc, path, pace));
    toc.size = static_cast<std::uint64_t>(st.st_size);
  }
  WEFT_CHECK(sync_file(fd->get(), path));
  return lost;
}

}  // namespace

Result<bool> is_unsynced(const PackDir& packs, PackId pack) {
  WEFT_TRY(const auto listing, if_there(packs.listing(pack)));
  if (!listing) return false;
  return !(*listing)->boot().empty();
}

Status flush_pack(const PackDir& packs, PackId pack, const FlushPace& pace, const ForgetLost& forget) {
  WEFT_TRY(auto toc, if_there(packs.toc(pack)));
  if (!toc) return {};
  if (toc->boot.empty()) return {};
  WEFT_TRY(const std::vector<PackEntry> lost, make_durable(packs.pack_file(pack), *toc, pace));
  if (!lost.empty()) WEFT_CHECK(forget(lost));
  toc->boot.clear();
  WEFT_CHECK(replace_toc(packs.toc_file(pack), *toc));
  return sync_directory(packs.path());
}

}  // namespace weft

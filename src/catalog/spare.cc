#include "catalog/spare.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kSpareBytes = 4U << 20U;
constexpr std::uint64_t kSmallest = 16U << 10U;
constexpr std::uint64_t kShare = 64;  // of the file system, at most 1 / 64

SafePath spare_path(const SafePath& store_path) {
  return store_path / "index/spare";
}

}  // namespace

// On a full disk the spare takes what is free, which is what it has just been, or what gc has freed.
void make_spare(const SafePath& store_path) {
  const SafePath path = spare_path(store_path);
  struct statvfs fs {};
  if (::fstatvfs(store_path.root().fd(), &fs) != 0) return;
  const std::uint64_t wanted = std::min(kSpareBytes, std::uint64_t{fs.f_blocks} * fs.f_frsize / kShare);
  const auto fd = open_file(path, O_WRONLY | O_CREAT, 0600);
  if (!fd.ok()) return;
  for (std::uint64_t bytes = wanted; bytes >= kSmallest; bytes /= 2)
    if (::posix_fallocate(fd->get(), 0, static_cast<off_t>(bytes)) == 0) return;
  const auto st = stat_fd(fd->get(), path);
  if (st.ok() && st->st_blocks == 0) static_cast<void>(remove_file(path));
}

bool release_spare(const SafePath& store_path) {
  const SafePath path = spare_path(store_path);
  return stat_file(path).ok() && remove_file(path).ok();
}

}  // namespace weft

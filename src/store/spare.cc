#include "store/spare.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kSpareBytes = 4U << 20U;
constexpr std::uint64_t kShare = 64;  // of what is free, at most 1 / 64

std::string spare_path(const std::string& store_path) {
  return store_path + "/index/spare";
}

}  // namespace

void make_spare(const std::string& store_path) {
  const std::string path = spare_path(store_path);
  struct statvfs fs {};
  if (stat_file(path).ok() || ::statvfs(store_path.c_str(), &fs) != 0) return;
  std::uint64_t bytes = std::min(kSpareBytes, std::uint64_t{fs.f_bavail} * fs.f_frsize / kShare);
  auto fd = open_file(path, O_WRONLY | O_CREAT);
  if (fd.ok() && bytes > 0 && ::posix_fallocate(fd->get(), 0, static_cast<off_t>(bytes)) == 0) return;
  static_cast<void>(remove_file(path));
}

bool release_spare(const std::string& store_path) {
  return ::unlink(spare_path(store_path).c_str()) == 0;
}

}  // namespace weft

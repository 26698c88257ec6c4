#include "os/file_ops.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "os/entries.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kBootTextMax = 64;  // bytes

constexpr std::uint64_t kResidentStep = 1U << 30U;  // of a file mapped at once

// True also if that cannot be found out. mincore(2) answers only those who may write to the file, and says that all
// pages are in memory to others.
bool has_resident_pages(int fd, std::uint64_t offset, std::uint64_t length) {
  void* const mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return true;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((length + page - 1) / page);
  const bool is_known = ::mincore(mapped, length, pages.data()) == 0;
  ::munmap(mapped, length);
  return !is_known || std::ranges::any_of(pages, [](unsigned char one) { return (one & 1U) != 0; });
}

}  // namespace

bool clone_file(int from, int to) {
  return ::ioctl(to, FICLONE, from) == 0;
}

Status clone_range(int from, std::uint64_t from_offset, std::uint64_t length, int to, std::uint64_t to_offset,
                   std::string_view where) {
  const file_clone_range range{from, from_offset, length, to_offset};
  if (::ioctl(to, FICLONERANGE, &range) == 0) return {};
  return sys_error(errno, fmt::format("{}: sharing {} bytes at {}", where, length, to_offset));
}

bool link_descriptor(int fd, const SafePath& to) {
  const auto directory = open_directory(to.parent());
  const std::string name = to.str().substr(to.str().rfind('/') + 1);
  return directory.ok() && link_descriptor_at(fd, directory->get(), name).ok();
}

// Takes the lease on an open file description of its own: not_written() takes and drops a lease on the caller's. No
// signal reports a writer.
std::optional<ReadLease> ReadLease::take(int fd) {
  auto own = open_descriptor(fd);
  if (!own.ok() || ::fcntl(own->get(), F_SETLEASE, F_RDLCK) != 0) return std::nullopt;
  ::fcntl(own->get(), F_SETOWN, 0);
  return ReadLease(std::move(own).value());
}

bool ReadLease::can_take(int fd) {
  const auto own = open_descriptor(fd);
  if (!own.ok()) return false;
  return ::fcntl(own->get(), F_SETLEASE, F_RDLCK) == 0 || sys_error(errno, "a lease").code == Errc::busy;
}

bool ReadLease::holds() const {
  return ::fcntl(fd_.get(), F_GETLEASE) == F_RDLCK;
}

bool is_unheld(const ReadLease& lease, std::string_view where) {
  const int fd = lease.fd();
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0 || system.f_type == OVERLAYFS_SUPER_MAGIC) return false;
  const auto st = stat_fd(fd, where);
  if (!st.ok() || !sync_file(fd, where).ok()) return false;
  drop_pages(fd);
  const auto size = static_cast<std::uint64_t>(st->st_size);
  for (std::uint64_t at = 0; at < size; at += kResidentStep)
    if (has_resident_pages(fd, at, std::min(kResidentStep, size - at))) return false;
  return true;
}

Result<Fd> open_descriptor(int fd, int flags) {
  WEFT_TRY(const std::string path, path_of_descriptor(fd, "a file"));
  return open_file(path, flags);
}

Status give_to_owner(int fd, const SafePath& directory) {
  WEFT_TRY(const Fd home, open_directory(directory));
  WEFT_TRY(const struct stat st, stat_fd(home.get(), directory));
  if (::geteuid() == 0 && ::fchown(fd, st.st_uid, st.st_gid) != 0) return sys_error(errno, directory);
  return set_mode(fd, 0644, directory);
}

void drop_pages(int fd) {
  static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
}

void start_writeback(int fd, std::uint64_t offset, std::uint64_t length) {
  static_cast<void>(
      ::sync_file_range(fd, static_cast<off64_t>(offset), static_cast<off64_t>(length), SYNC_FILE_RANGE_WRITE));
}

void write_back(int fd, std::uint64_t offset, std::uint64_t length) {
  static_cast<void>(
      ::sync_file_range(fd, static_cast<off64_t>(offset), static_cast<off64_t>(length),
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
}

std::string read_line(const Result<Fd>& fd, std::size_t bytes_max) {
  if (!fd.ok()) return "";
  std::string line(bytes_max, '\0');
  const auto read = read_some(fd->get(), 0, std::as_writable_bytes(std::span(line)), "line");
  line.resize(read.ok() ? *read : 0);
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

// Cached, because a process does not outlive its boot.
const std::string& boot_id() {
  static const std::string id = read_line(open_file("/proc/sys/kernel/random/boot_id", O_RDONLY), kBootTextMax);
  return id;
}

std::uint64_t uptime_s() {
  const std::string line = read_line(open_file("/proc/uptime", O_RDONLY), kBootTextMax);
  std::uint64_t seconds = 0;
  static_cast<void>(std::from_chars(line.data(), line.data() + line.size(), seconds));  // the fraction does not count
  return seconds;
}

void advise_sequential(int fd) {
  static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
}

std::optional<std::uint64_t> unshared_bytes(int fd) {
  constexpr std::uint32_t kExtents = 128;
  alignas(fiemap) std::array<std::byte, sizeof(fiemap) + kExtents * sizeof(fiemap_extent)> memory{};
  auto* const map = new (memory.data()) fiemap;
  map->fm_start = 0;
  map->fm_flags = 0;
  std::uint64_t bytes = 0;
  for (;;) {
    map->fm_length = FIEMAP_MAX_OFFSET - map->fm_start;
    map->fm_extent_count = kExtents;
    if (::ioctl(fd, FS_IOC_FIEMAP, map) != 0) return {};
    const std::span<const fiemap_extent> extents(map->fm_extents, map->fm_mapped_extents);
    for (const fiemap_extent& extent : extents)
      if ((extent.fe_flags & FIEMAP_EXTENT_SHARED) == 0) bytes += extent.fe_length;
    if (extents.empty() || (extents.back().fe_flags & FIEMAP_EXTENT_LAST) != 0) return bytes;
    map->fm_start = extents.back().fe_logical + extents.back().fe_length;
  }
}

std::optional<DiskSpace> disk_space(int fd) {
  struct statvfs facts {};
  if (::fstatvfs(fd, &facts) != 0) return {};
  return DiskSpace{facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize, facts.f_files};
}

Result<unsigned long> file_system_type(int fd, std::string_view where) {
  struct statfs facts {};
  if (::fstatfs(fd, &facts) != 0) return sys_error(errno, where);
  return static_cast<unsigned long>(facts.f_type);
}

Result<struct statvfs> file_system_facts(int fd, std::string_view where) {
  struct statvfs facts {};
  if (::fstatvfs(fd, &facts) != 0) return sys_error(errno, where);
  return facts;
}

std::uint64_t cache_reserve(const DiskSpace& disk) {
  return disk.total / limits::kCacheReservePart;
}

std::uint64_t allocated_bytes(const struct stat& st) {
  return static_cast<std::uint64_t>(st.st_blocks) * 512;
}

bool is_young(const SafePath& path, std::uint64_t before_ns) {
  constexpr std::uint64_t kYoung = 60ULL * 1'000'000'000;
  const auto st = stat_file(path);
  if (!st.ok()) return false;
  const std::uint64_t changed = nanoseconds(st->st_mtim);
  return changed < before_ns && changed + kYoung > now_ns();
}

void touch_file(int fd) {
  static_cast<void>(::futimens(fd, nullptr));
}

}  // namespace weft

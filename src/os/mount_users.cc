#include "os/mount_users.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kNamedMax = 5;

// True if the link leads into the mount. An empty mask makes statx(2) answer from the kernel's own facts, also in a
// mount that this user may not enter.
bool leads_to(const std::string& link, const WeftMount& mount) {
  struct statx facts {};
  return ::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &facts) == 0 &&
         (facts.stx_mask & STATX_MNT_ID) != 0 && facts.stx_mnt_id == mount.id;
}

constexpr std::uint64_t kBytesMax = 64U << 20U;  // of a file of /proc

// True if the process maps a file of the mount. /proc/PID/maps writes a device as two hexadecimal numbers.
bool maps_from(const std::string& process, const WeftMount& mount) {
  const auto parts = split(mount.device, ':');
  if (parts.size() != 2) return false;
  const std::string device =
      fmt::format(" {:02x}:{:02x} ", parse_u64(parts[0]).value_or(0), parse_u64(parts[1]).value_or(0));
  const auto maps = read_kernel_file(process + "/maps", kBytesMax);
  return maps.ok() && maps->find(device) != std::string::npos;
}

bool has_open(const std::string& process, const WeftMount& mount) {
  std::error_code error;  // the process may belong to another user, or have ended
  std::filesystem::directory_iterator entry(process + "/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (leads_to(entry->path().string(), mount)) return true;
  return false;
}

bool uses(const std::string& process, const WeftMount& mount) {
  return leads_to(process + "/cwd", mount) || leads_to(process + "/root", mount) || has_open(process, mount) ||
         maps_from(process, mount);
}

}  // namespace

std::vector<MountUser> mount_users(const WeftMount& mount) {
  std::vector<MountUser> users;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto pid = parse_u64(entry->path().filename().string());
    if (!pid || *pid == static_cast<std::uint64_t>(::getpid())) continue;
    const std::string process = entry->path().string();
    if (!uses(process, mount)) continue;
    std::string command;
    if (auto name = read_kernel_file(process + "/comm", kBytesMax); name.ok()) command = std::move(name).value();
    if (command.ends_with('\n')) command.pop_back();
    users.push_back({*pid, std::move(command)});
  }
  std::ranges::sort(users, {}, &MountUser::pid);
  return users;
}

std::string describe_users(const std::vector<MountUser>& users) {
  std::string out;
  const std::size_t named = std::min(users.size(), kNamedMax);
  for (std::size_t i = 0; i < named; ++i)
    out += fmt::format("{}{} (pid {})", i == 0 ? "" : ", ", printable(users[i].command), users[i].pid);
  if (users.size() > named) out += fmt::format(" and {} more", users.size() - named);
  return out;
}

}  // namespace weft

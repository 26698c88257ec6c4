#include "catalog/fs_check.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "os/sys.h"

namespace weft {
namespace {

// f_type as statfs(2), linux/magic.h and the file systems' own sources give it.
constexpr std::array<std::pair<unsigned long, std::string_view>, 21> kUnsuitable = {{
    {0x6969, "nfs"},        {0x517B, "smb"},          {0xFF534D42, "cifs"},  {0xFE534D42, "smb2"},
    {0x01021997, "9p"},     {0x0BD00BD0, "lustre"},   {0x47504653, "gpfs"},  {0x00C36400, "ceph"},
    {0x5346414F, "afs"},    {0x6B414653, "afs"},      {0x73757245, "coda"},  {0x0000564C, "ncp"},
    {0x19830326, "beegfs"}, {0x20030528, "orangefs"}, {0x65735546, "fuse"},  {0x65735543, "fusectl"},
    {0xAAD7AAEA, "panfs"},  {0x01161970, "gfs2"},     {0x7461636F, "ocfs2"}, {0x786F4256, "vboxsf"},
    {0xBACBACBC, "vmhgfs"},
}};

}  // namespace

std::optional<std::string_view> unsuitable_file_system(unsigned long f_type) {
  const auto* found = std::find_if(kUnsuitable.begin(), kUnsuitable.end(),
                                   [f_type](const auto& entry) { return entry.first == (f_type & 0xFFFFFFFFUL); });
  if (found == kUnsuitable.end()) return {};
  return found->second;
}

Status check_file_system(const SafePath& directory) {
  struct statfs fs {};
  if (::fstatfs(directory.root().fd(), &fs) != 0) return sys_error(errno, directory);
  auto name = unsuitable_file_system(static_cast<unsigned long>(fs.f_type));
  if (!name) return {};
  return Error{Errc::unsupported,
               fmt::format("{}: a store cannot lie on {}; expected a local file system (ext4, xfs, btrfs, tmpfs)",
                           directory, *name)};
}

}  // namespace weft

// users.h by the C library.
#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include "base/text.h"
#include "os/lookups/users.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kEntryBytes = 64U << 10U;  // largest entry of the name service
constexpr int kGroupsMax = 256;

// An entry of the name service, with the bytes that it points into.
template <class Entry>
struct Found {
  Entry entry{};
  std::vector<char> bytes = std::vector<char>(kEntryBytes);
  bool is_there = false;
  int failure = 0;  // errno of the name service
};

template <class Entry, class Lookup, class Key>
Found<Entry> look_up(Lookup lookup, Key key) {
  Found<Entry> found;
  Entry* at = nullptr;
  found.failure = lookup(key, &found.entry, found.bytes.data(), found.bytes.size(), &at);
  found.is_there = found.failure == 0 && at != nullptr;
  return found;
}

Error unknown(std::string_view kind, std::string_view name, int failure) {
  if (failure != 0) return sys_error(failure, fmt::format("{} {}", kind, printable(name)));
  return {Errc::invalid, fmt::format("no {} \"{}\" on this machine", kind, printable(name))};
}

}  // namespace

Result<uid_t> user_id(const std::string& name) {
  const auto found = look_up<passwd>(::getpwnam_r, name.c_str());
  if (!found.is_there) return unknown("user", name, found.failure);
  return found.entry.pw_uid;
}

Result<gid_t> group_id(const std::string& name) {
  const auto found = look_up<group>(::getgrnam_r, name.c_str());
  if (!found.is_there) return unknown("group", name, found.failure);
  return found.entry.gr_gid;
}

std::optional<std::string> name_of_user(uid_t uid) {
  const auto found = look_up<passwd>(::getpwuid_r, uid);
  return found.is_there ? std::optional<std::string>(found.entry.pw_name) : std::nullopt;
}

std::vector<gid_t> login_groups(uid_t uid, gid_t gid) {
  const auto found = look_up<passwd>(::getpwuid_r, uid);
  if (!found.is_there) return {};
  std::vector<gid_t> groups(kGroupsMax);
  int count = kGroupsMax;
  if (::getgrouplist(found.entry.pw_name, gid, groups.data(), &count) < 0) count = kGroupsMax;
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

}  // namespace weft

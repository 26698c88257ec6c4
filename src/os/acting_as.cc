#include "os/acting_as.h"

#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/plain_text.h"

namespace weft {
namespace {

// Sets the groups of this thread only. The C library's setgroups() sets those of all threads.
void set_groups(const std::vector<gid_t>& groups) {
  ::syscall(SYS_setgroups, groups.size(), groups.data());
}

constexpr std::size_t kNamesBytes = 64U << 10U;
constexpr int kGroupsMax = 256;

// Returns the user's entry in the system's database, with its texts in `bytes`; nullptr if there is none.
const passwd* find_user(uid_t uid, passwd& entry, std::vector<char>& bytes) {
  bytes.resize(kNamesBytes);
  passwd* found = nullptr;
  return ::getpwuid_r(uid, &entry, bytes.data(), bytes.size(), &found) == 0 ? found : nullptr;
}

}  // namespace

UserIds with_groups(uid_t uid, gid_t gid) {
  UserIds user{uid, gid};
  std::vector<char> bytes;
  passwd entry{};
  if (find_user(uid, entry, bytes) == nullptr) return user;
  int count = kGroupsMax;
  user.groups.resize(kGroupsMax);
  if (::getgrouplist(entry.pw_name, gid, user.groups.data(), &count) < 0) count = kGroupsMax;
  user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

std::string user_name(uid_t uid) {
  std::vector<char> bytes;
  passwd entry{};
  const passwd* const found = find_user(uid, entry, bytes);
  return found != nullptr && can_be_author({found->pw_name, {}}) ? found->pw_name : std::to_string(uid);
}

ActingAs::ActingAs(const UserIds& user) {
  if (::geteuid() != 0 || user.uid == 0) return;
  changed_ = true;
  set_groups(user.groups);
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
}

ActingAs::~ActingAs() {
  if (!changed_) return;
  ::setfsuid(0);
  ::setfsgid(0);
  set_groups({});
}

}  // namespace weft

#include "os/acting_as.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft {
namespace {

// Sets the groups of this thread only. The C library's setgroups() sets those of all threads.
void set_groups(const std::vector<gid_t>& groups) {
  ::syscall(SYS_setgroups, groups.size(), groups.data());
}

}  // namespace

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

// The rights of a calling thread: those of the user whose request it serves. As the kernel checks these for each
// thread, what the thread does in the drafts is allowed, owned and counted as if the user had done it.
#pragma once

#include "weft/publish.h"

namespace weft {

// With the groups that a login of this user has.
UserIds with_groups(uid_t uid, gid_t gid);

// While it lives, this thread acts on files as that user. Only root can do so; any other server serves its own user.
class ActingAs {
 public:
  explicit ActingAs(const UserIds& user);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace weft

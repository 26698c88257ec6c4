// The rights of a thread that serves a request: those of the requesting user. The kernel checks rights per thread, so
// the thread's accesses to drafts are allowed, owned and counted as the user's own.
#pragma once

#include <string>

#include "weft/store/publish.h"

namespace weft {

// Returns the ids of a user, with the groups that a login gets.
UserIds with_groups(uid_t uid, gid_t gid);
// Returns the name of a user, or the uid in decimal digits if the system has no name that a record may hold.
std::string user_name(uid_t uid);

// Lets this thread access files as `user` while it lives. Does nothing unless the process is root: then the server
// serves its own user only.
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

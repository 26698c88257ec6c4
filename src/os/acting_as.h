// The rights of a thread that serves a request: those of the requesting user. The kernel checks rights per thread, so
// the thread's accesses to drafts are allowed, owned and counted as the user's own.
#pragma once

#include "weft/store/publish.h"

namespace weft {

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

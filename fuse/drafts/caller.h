// The rights of a calling thread: those of the user whose request it serves. As the kernel checks these for each
// thread, what the thread does in the drafts is allowed, owned and counted as if the user had done it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace weft {

// While it lives, this thread acts on files as that user. Only root can do so; any other server serves its own user.
class ActingAs {
 public:
  ActingAs(uid_t uid, gid_t gid, const std::vector<gid_t>& groups);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace weft

// The rights of a calling thread: those of the user whose request it serves. As the kernel checks these for each
// thread, what the thread does in the drafts is allowed, owned and counted as if the user had done it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace weft {

struct DraftUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // beside `gid`
};

// While it lives, this thread acts on files as that user. Only root can do so; any other server serves its own user.
class ActingAs {
 public:
  explicit ActingAs(const DraftUser& user);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace weft

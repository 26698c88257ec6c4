// A tree mounted by a supervisor in a child process and a server below it, for as long as the object lives.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "fuse/process/options.h"
#include "testing.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"

namespace weft::testing {

// Can this process mount at all?
bool can_mount();

enum class Kernel { as_it_is, without_resend, without_passthrough };

class ServedMount {
 public:
  // `tree` runs in the child. `options`.store and .directory are set here. `kernel`: what it is taken for,
  // without_resend once it serves.
  ServedMount(const std::function<std::unique_ptr<Vfs>()>& tree, MountOptions options,
              Kernel kernel = Kernel::as_it_is);
  ~ServedMount();  // unmounts by force if need be
  ServedMount(const ServedMount&) = delete;
  ServedMount& operator=(const ServedMount&) = delete;

  const Status& started() const { return started_; }
  std::string operator/(std::string_view path) const { return directory_ / path; }
  const std::string& path() const { return directory_.path(); }
  void signal(int number) const;
  int wait();  // the supervisor's exit status; -1 when it was killed

 private:
  TempDir directory_;
  TempDir store_;  // nothing is read of it, but passthrough is tried with its index
  pid_t server_ = -1;
  Status started_;
};

}  // namespace weft::testing

// A file that hangs whoever opens it, as on a file system whose server does not answer. Needs root.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/fanotify.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "os/sys.h"
#include "os/unix_socket.h"
#include "testing.h"

namespace weft::testing {

// Everybody who opens the file waits for the end of this object: the kernel asks it for permission, and it says
// nothing.
class HangingFile {
 public:
  // Makes an empty file if there is none.
  explicit HangingFile(const std::string& path) : asked_(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY)) {
    must(open_file(path, O_RDONLY | O_CREAT));
    if (!asked_.valid() || ::fanotify_mark(asked_.get(), FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, path.c_str()) != 0)
      throw std::runtime_error(path + ": fanotify, which needs root");
  }

  // Waits until somebody waits for the end.
  void wait_for_opener() const {
    if (!wait_for(asked_.get(), POLLIN, std::chrono::minutes(5))) throw std::runtime_error("nobody opens the file");
  }

 private:
  Fd asked_;
};

}  // namespace weft::testing

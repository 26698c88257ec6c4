// `weft import` as a separate process, with the rights of the publishing user.
#pragma once

#include <sys/types.h>

#include <string>

#include "weft/node.h"
#include "weft/publish.h"
#include "weft/result.h"

namespace weft {

struct ImportCommand {
  std::string program;
  std::string store;
  bool trust_store = false;
  ImportOptions options;  // without paths: the process publishes its working directory
};

// The descriptors stay the caller's. The process holds a flock(2) on `lock` until it ends.
struct ImportEnds {
  int content = -1;  // its working directory, which it publishes
  int answer = -1;   // its standard output: one JSON object
  int lock = -1;
};

Result<pid_t> start_import(const ImportCommand& command, const UserIds& user, const ImportEnds& ends);

}  // namespace weft

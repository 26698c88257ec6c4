// `weft import` as a separate process, with the rights of the publishing user.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "fuse/drafts/caller.h"
#include "fuse/drafts/draft_facts.h"
#include "weft/result.h"

namespace weft {

struct ImportCommandLine {
  std::string program;
  std::string store;
  std::string model;
  std::string tag;
  bool linked = false;  // publish hard links; the files stay
  bool trust_store = false;
  DraftFacts facts;
};

// The descriptors stay the caller's. The process holds a flock(2) on `lock` until it ends.
struct ImportEnds {
  int content = -1;  // its working directory, which it publishes
  int answer = -1;   // its standard output: one JSON object
  int lock = -1;
};

Result<pid_t> start_import(const ImportCommandLine& line, const UserIds& user, const ImportEnds& ends);

}  // namespace weft

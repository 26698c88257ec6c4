// The command of `weft watch --exec`: one at a time, and of what came meanwhile the newest.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/shared/context.h"
#include "events/event.h"
#include "os/sys.h"
#include "weft/store.h"

namespace weft {

// One thread. The command is run by /bin/sh, for publishes and for tags that lead to a version, and ends with this
// process.
class WatchHook {
 public:
  // "": there is none. `context` and `store` outlive this.
  WatchHook(const Context& context, std::string command, Store& store)
      : context_(context), command_(std::move(command)), store_(store) {}

  // Replaces what waits of the same model, or of the same tags of it.
  void add(const ModelEvent& event);
  // Starts what waits, unless something runs; notes the end of what ran.
  Status look();
  int fd() const { return running_ ? running_->ended.get() : -1; }  // readable once look() has something to do

 private:
  struct Running {
    pid_t pid;
    Fd ended;
    std::string what;
  };
  Status start(const ModelEvent& event);
  Status take_end();

  const Context& context_;
  const std::string command_;
  Store& store_;
  std::vector<ModelEvent> waiting_;
  std::optional<Running> running_;
};

}  // namespace weft

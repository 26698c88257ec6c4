// Runs the command of `weft watch --exec`: one at a time, and only for the newest of the events that arrived meanwhile.
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

// One thread. /bin/sh runs the command, for publishes and for tags that are set. The command ends with this process.
class WatchHook {
 public:
  // Runs nothing if `command` is "". `context` and `store` outlive this.
  WatchHook(const Context& context, std::string command, Store& store)
      : context_(context), command_(std::move(command)), store_(store) {}

  // Queues an event. Replaces a queued publish of the same model, or a queued event of the same tags of the model.
  void add(const ModelEvent& event);
  // Handles the end of a finished command. Starts the next queued one, unless a command is running.
  Status look();
  int fd() const { return running_ ? running_->ended.get() : -1; }  // readable when the running command has ended

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

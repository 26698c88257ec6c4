// A subcommand: declares what it takes, checks it, runs. Each has a file of its own; commands.h lists them.
#pragma once

#include <memory>
#include <string_view>

#include "cli/shared/context.h"
#include "cli/shared/options.h"
#include "weft/result.h"

namespace weft {

struct CommandInfo {
  std::string_view name;
  std::string_view summary;      // one line, no full stop
  std::string_view description;  // paragraphs, each line ended
  std::string_view examples;     // lines, each ended
  std::string_view json;         // what --json prints; "" for a command that has none
  std::string_view interrupted;  // what Ctrl-C leaves; "" for a command that is over too soon to have a progress bar
};

class Command {
 public:
  virtual ~Command() = default;
  virtual const CommandInfo& info() const = 0;
  virtual void declare(OptionSet& options) = 0;
  virtual Status check_usage() const { return {}; }  // what the parser cannot know; a failure exits 2
  virtual Result<int> run(Context& context) = 0;     // the exit code
};

}  // namespace weft

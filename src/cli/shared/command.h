// A subcommand: declares its options and arguments, checks them, runs. Each has its own file; commands.h lists them.
#pragma once

#include <memory>
#include <string_view>

#include "cli/shared/context.h"
#include "cli/shared/options.h"
#include "weft/result.h"

namespace weft {

struct CommandInfo {
  std::string_view name;
  std::string_view summary;           // one line, no full stop
  std::string_view description = {};  // paragraphs, each line ended
  std::string_view examples;          // lines, each ended
  std::string_view json = {};         // format of the --json output; "" if the command has no --json
  std::string_view interrupted = {};  // state after Ctrl-C, for the message; "" for a command without a progress bar
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(OptionSet& /*options*/) {}
  // Makes the checks that the parser cannot, and keeps the parsed values for run(). A failure exits 2.
  virtual Status check_usage() { return {}; }
  virtual Result<int> run(Context& context) = 0;  // returns the exit code
};

// A row of the table of commands.
struct CommandEntry {
  const CommandInfo& info;
  std::unique_ptr<Command> (*make)();
};
template <class C>
std::unique_ptr<Command> make() {
  return std::make_unique<C>();
}

}  // namespace weft

// Runs the command line in this process, with the test's own streams, variables and signals.
#pragma once

#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace weft::testing {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

class Cli {
 public:
  std::map<std::string, std::string> variables;
  std::atomic<int> interrupt = 0;
  bool terminal = false;
  bool root = false;
  std::string config_file = "/nowhere/weft.conf";
  std::string program;

  Outcome operator()(const std::vector<std::string>& args) {
    std::ostringstream out;
    std::ostringstream err;
    CliEnvironment environment{.out = out,
                               .err = err,
                               .err_is_terminal = terminal,
                               .variable = [this](const std::string& name) -> std::optional<std::string> {
                                 auto at = variables.find(name);
                                 return at == variables.end() ? std::nullopt : std::optional(at->second);
                               },
                               .is_root = root,
                               .config_file = config_file,
                               .program = program,
                               .interrupt = interrupt};
    Outcome outcome;
    outcome.code = run_weft(args, environment);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }
};

}  // namespace weft::testing

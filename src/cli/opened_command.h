// A subcommand whose options are declared: its own options, and the options that all commands have. Options of the
// program may precede its command.
#pragma once

#include <memory>
#include <string_view>

#include "cli/shared/command.h"
#include "cli/shared/context.h"
#include "cli/shared/options.h"

namespace weft {

// An option of the program, for its parser, its help and the shells' completion.
struct ProgramOption {
  std::string_view names;  // as in OptionSet::Row, also the next two
  std::string_view placeholder;
  std::string_view help;
  std::string_view more;                 // what `weft --help` adds to the help
  bool is(std::string_view word) const;  // true for one of the names
};

inline constexpr std::string_view kStoreOption = "--store";
inline constexpr ProgramOption kProgramStore{
    kStoreOption, "DIR", "the directory of the store",
    "the default is $WEFT_STORE, else the store of /etc/weft/weft.conf, else /var/lib/weft for root and "
    "$XDG_DATA_HOME/weft, usually ~/.local/share/weft, for other users"};
inline constexpr ProgramOption kProgramTrust{"--trust-store", "",
                                             "as root, use the store even if other users can write to it", ""};
inline constexpr ProgramOption kProgramHelp{"-h,--help", "", "print this text", ""};
inline constexpr ProgramOption kProgramVersion{"-V,--version", "",
                                               "print the version, the build and the path of this program", ""};
inline constexpr ProgramOption kProgramOptions[] = {kProgramStore, kProgramTrust, kProgramHelp, kProgramVersion};

struct OpenedCommand {
  // `entry` and `environment` must live as long as this object.
  OpenedCommand(const CommandEntry& entry, const CliEnvironment& environment);

  const CommandInfo& info;
  const std::unique_ptr<Command> command;
  Context context;
  bool help = false;  // set by --help
  OptionSet options;
};

}  // namespace weft

// mount.weft's command line, as mount(8) and `weft mount` give it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "weft/result.h"

namespace weft {

struct MountOptions {
  std::string store;
  std::string directory;
  bool read_only = false;  // the mount itself; writes are refused in any case
  bool no_exec = false;
  bool allow_other = false;  // users other than the mounting one; on by default for root
  uid_t uid = 0;             // who owns the files that are shown; the mounting user by default
  gid_t gid = 0;
  mode_t umask = 0;  // taken from 0444 of files and 0555 of directories
  bool show_views = true;
  bool xattr = false;
  std::optional<std::uint64_t> assembly_cache_max;  // bytes; without: as the store says
  std::string log_file;
  std::string log_level = "info";
  bool foreground = false;
};

enum class Action : std::uint8_t { mount, help, version };

struct CommandLine {
  Action action = Action::mount;
  MountOptions mount;
};

// What the process is, for defaults.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string store;  // $WEFT_STORE
};

// `arguments` without the program's name. Every failure is one of usage.
Result<CommandLine> parse_command_line(std::span<const char* const> arguments, const Caller& caller);

std::string help_text();

}  // namespace weft

// mount.weft's command line, as mount(8) and `weft mount` give it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/cold.h"
#include "weft/result.h"

namespace weft {

struct MountOptions {
  std::string store;
  std::string directory;
  bool no_exec = false;
  bool allow_other = false;  // users other than the mounting one; on by default for root
  uid_t uid = 0;             // who owns the files that are shown; the mounting user by default
  gid_t gid = 0;
  mode_t umask = 0;                   // taken from 0444 of files and 0555 of directories
  std::uint32_t attr_timeout_s = 30;  // how long the kernel keeps link counts and owned bytes
  bool xattr = false;
  bool trust_store = false;                         // also one that others can write to
  std::optional<std::uint64_t> assembly_cache_max;  // bytes; without: as the store says
  std::optional<ColdPolicy> cold;                   // without: as the node's daemon is told
  std::string log_file;
  std::string log_level = "info";
  std::uint32_t stall_s = 60;               // a server that answers nothing for so long is replaced; 0: never
  bool record_reads = true;                 // faults in records of LMDB files bring whole records
  std::optional<std::uint64_t> drafts_max;  // bytes of new/; without: a quarter of the file system
  std::string durability;                   // of what new/ publishes and does not say it itself; "": as import
  bool announce = false;                    // changes raise inotify events; implied by publish
  bool publish = false;                     // new/ is there, and what is renamed in it is published
  bool non_empty = false;                   // also on a directory that holds something
  bool foreground = false;

  // Does the kernel have to check modes? Where everybody may read everything, it need not, and then a write is answered
  // with EROFS for every user, and a path walk needs no fresh attributes.
  bool modes_restrict() const { return (umask & 0555U) != 0; }
};

// What a server inherits from its supervisor: numbers of descriptors.
struct ServerEnds {
  int channel = -1;
  int state = -1;  // memory of SharedState
  int open = -1;   // the store's index/open, with the locks of versions that are open in this mount
};

// What a supervisor hands to the program that it becomes at an upgrade: numbers of inherited descriptors.
struct InheritedEnds {
  int device = -1;
  int state = -1;
  int open = -1;
  int channel = -1;  // to the server
  int door = -1;
  int client = -1;  // waits for the outcome of the upgrade
  int server_pid = -1;
};

// The last three are how the program starts itself.
enum class Action : std::uint8_t { mount, help, version, serve, supervise, announce };

struct CommandLine {
  Action action = Action::mount;
  MountOptions mount;
  ServerEnds ends;
  InheritedEnds inherited;
  int announced_state = -1;  // memory of SharedState, for the announcer
};

// What the process is, for defaults.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string store;  // $WEFT_STORE
};

// `arguments` without the program's name. Every failure is one of usage.
Result<CommandLine> parse_command_line(std::span<const char* const> arguments, const Caller& caller);

// Words that parse_command_line() turns into `options` again, whoever calls.
std::vector<std::string> to_words(const MountOptions& options);

std::string help_text();

}  // namespace weft

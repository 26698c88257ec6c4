// The command line of mount.weft, as mount(8) and `weft mount` pass it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/bytes/cold.h"
#include "weft/result.h"

namespace weft {

struct MountOptions {
  std::string store;
  std::string directory;  // the mount point, or "/dev/fd/N" (os/mounts.h, names_descriptor())
  bool no_exec = false;
  bool allow_other = false;  // let other users in; on by default for root
  uid_t uid = 0;             // owner of the files shown; the mounting user by default
  gid_t gid = 0;
  mode_t umask = 0;                   // removed from the modes of files and directories
  std::uint32_t attr_timeout_s = 30;  // how long the kernel caches link counts and owned bytes
  bool xattr = false;
  bool trust_store = false;                         // mount even a store that other users can write to
  std::optional<std::uint64_t> assembly_cache_max;  // bytes; without: the store's setting
  std::optional<ColdPolicy> cold;                   // without: the daemon's setting
  std::string log_file;
  std::string log_level = "info";
  std::uint32_t stall_s = 60;               // a server without a reply for this time is replaced; 0: never
  bool record_reads = true;                 // a fault in a record of an LMDB file reads the whole record
  bool passthrough = true;                  // the kernel reads files from the store, if it can
  std::optional<std::uint64_t> drafts_max;  // bytes of new/; without: a quarter of the file system
  std::string durability;                   // of versions published in new/ that name none; "": the default of import
  bool announce = false;                    // changes raise inotify events; implied by publish
  bool publish = false;                     // new/ exists, and a rename in it publishes
  bool non_empty = false;                   // mount even on a directory that holds files
  bool foreground = false;
  std::string security;  // SELinux's options as mount(2) takes them, such as "context=…"; needs root

  // True if not everybody may read everything.
  bool modes_restrict() const { return (umask & 0555U) != 0; }
  // True if the kernel checks modes. On a read-only super block it answers each write with EROFS before it looks at
  // modes. On a writable one, users who may read everything get EROFS from the server, so the kernel must not check.
  bool kernel_checks_modes() const { return !announce || modes_restrict(); }
  // True if bind mounts of the mount may have an id mapping, as those of pods with a user namespace of their own. A
  // mount that announces may not: each draft belongs to a user, whom the kernel names no more (kernel/protocol.h).
  bool allows_id_maps() const { return !announce && kernel_checks_modes(); }
};

// Descriptors that a server inherits from its supervisor.
struct ServerEnds {
  int channel = -1;
  int state = -1;  // memory of SharedState
  int open = -1;   // the store's index/open, with the locks of the versions open in this mount
};

// Descriptors that a supervisor passes to the new program at an upgrade.
struct InheritedEnds {
  int device = -1;
  int state = -1;
  int open = -1;
  int channel = -1;  // to the server
  int door = -1;
  int client = -1;  // the upgrade's client, which waits for the outcome
  int server_pid = -1;
};

// The program starts itself with the last three.
enum class Action : std::uint8_t { mount, help, version, serve, supervise, announce };

struct CommandLine {
  Action action = Action::mount;
  MountOptions mount;
  ServerEnds ends;
  InheritedEnds inherited;
  int announced_state = -1;  // memory of SharedState, for the announcer
};

// The identity of the calling process, for defaults.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string store;  // $WEFT_STORE
};

// `arguments` exclude the program's name. Every error is a usage error.
Result<CommandLine> parse_command_line(std::span<const char* const> arguments, const Caller& caller);

// Returns words that parse_command_line() turns into `options` again, independent of the caller.
std::vector<std::string> to_words(const MountOptions& options);

std::string help_text();

}  // namespace weft

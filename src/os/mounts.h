// Mounted weft file systems: where they are, and what their servers say of themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

struct WeftMount {
  std::string directory;
  std::string store;     // as mount.weft was given it, absolute
  std::string device;    // "major:minor", of this mount and its bind mounts
  std::uint64_t id = 0;  // of this mount alone, in statx(2) too
};

// The weft mounts in a text of the form of /proc/self/mountinfo, in its order.
std::vector<WeftMount> parse_mountinfo(std::string_view text);
Result<std::vector<WeftMount>> weft_mounts();
// Those of the store in this directory.
Result<std::vector<WeftMount>> mounts_of(const std::string& store);
// The one that shows at `directory`, a real path: the last that was mounted there. A mount of another kind above it is
// not seen.
std::optional<WeftMount> top_mount(const std::vector<WeftMount>& mounts, std::string_view directory);

// The real path, also of a mount point whose server is dead (which no stat of it gets past).
Result<std::string> mount_point_path(const std::string& directory);

// Errc::busy when the mount does not answer in `time`, Errc::io when it cannot be read: its server is gone.
Result<std::string> read_mount_status(const std::string& directory, std::chrono::milliseconds time);

// The members of an object in a .weft/status ("mount"): name and value as text, in its order.
using MountMembers = std::vector<std::pair<std::string, std::string>>;
Result<MountMembers> status_members(std::string_view status_json, std::string_view object);

// What .weft/status says of the processes of a mount; what is not said is empty or 0.
struct MountProcesses {
  std::uint64_t server_pid = 0;
  std::uint64_t supervisor_pid = 0;  // 0: it is gone
  std::uint64_t pid_namespace = 0;   // where these are pids
  std::string control;               // abstract name of the socket for upgrades
};
Result<MountProcesses> mount_processes(std::string_view status_json);

// Descriptors that become readable as these processes end; none for those that are gone, or that live in another pid
// namespace.
std::vector<Fd> watch_processes(const MountProcesses& processes);
bool wait_for_ends(std::span<const Fd> processes, std::chrono::milliseconds time);  // false: one still runs

std::uint64_t pid_namespace();  // of this process; 0 when it cannot be told

}  // namespace weft

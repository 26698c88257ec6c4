// Mounted weft file systems: their mount points, the status that their servers report, their upgrade and their end.
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
  std::string store;     // absolute, as passed to mount.weft
  std::string device;    // "major:minor", the same for bind mounts
  std::uint64_t id = 0;  // unique to this mount; statx(2) has it too
};

// Returns the weft mounts in a text in the format of /proc/self/mountinfo, in the text's order.
std::vector<WeftMount> parse_mountinfo(std::string_view text);
Result<std::vector<WeftMount>> weft_mounts();
// Returns the directory where the root of the file system `device` ("major:minor"), of any type, was mounted first, in
// such a text; "" if the text has no such mount.
std::string parse_directory(std::string_view mountinfo, std::string_view device);
// The same, from /proc/self/mountinfo.
std::string directory_of_device(std::string_view device);
// Returns the mounts of the store in this directory.
Result<std::vector<WeftMount>> mounts_of(const std::string& store);
// Returns the visible weft mount at `directory`, a real path: the last one that was mounted there. Ignores a mount of
// another type on top of it.
std::optional<WeftMount> top_mount(const std::vector<WeftMount>& mounts, std::string_view directory);

// Opens a directory of the file system `device` ("major:minor"), not for reading, as the kernel has its path in the
// cache of names. No server is asked, so a server may open a directory of its own mount. While the descriptor is open,
// the cache keeps the name. Errc::busy: a part of the path is not in the cache.
Result<Fd> open_cached(const std::string& path, std::string_view device);

// True for a mount point such as "/dev/fd/5": the name of an open descriptor of /dev/fuse, with which another process
// has mounted.
bool names_descriptor(std::string_view mount_point);
// Errc::invalid if an open of the directory `store` takes longer than 10 seconds. Its path then leads below a mount
// that nobody serves yet, such as the one whose descriptor was passed for `mount_point`, and its server would wait for
// itself for ever. Any other outcome is an answer. Call it before anything else looks at the path.
Status check_store_answers(const std::string& store, std::string_view mount_point);
// Returns the device number ("major:minor") of the mount that a descriptor of /dev/fuse serves, from a text in the
// format of /proc/self/fdinfo/N. Without a mount and on older kernels the text has no number, and the result is "".
std::string parse_fdinfo(std::string_view text);
// The same, for a descriptor of this process.
std::string served_device(int fd);

// Returns the real path, even if `directory` is a mount point whose server is dead and stat(2) of it fails.
Result<std::string> mount_point_path(const std::string& directory);

// Errc::busy if the mount does not answer within `time`; Errc::io if the status cannot be read: the server is gone.
Result<std::string> read_mount_status(const std::string& directory, std::chrono::milliseconds time);

// umount(2). `lazy`: detaches the mount, which ends when nothing uses it. Errc::busy: it is in use.
Status unmount_directory(const std::string& directory, bool lazy, std::string_view where);

// The members of one object in .weft/status, such as "mount": name and value as text, in file order.
using MountMembers = std::vector<std::pair<std::string, std::string>>;
Result<MountMembers> status_members(std::string_view status_json, std::string_view object);

// The processes of a mount, according to .weft/status; absent facts are empty or 0.
struct MountProcesses {
  std::uint64_t server_pid = 0;
  std::uint64_t supervisor_pid = 0;  // 0: it has ended
  std::uint64_t pid_namespace = 0;   // the namespace of these pids
  std::string control;               // abstract name of the socket for upgrades
};
Result<MountProcesses> mount_processes(std::string_view status_json);

// Asks the supervisor of a mount to replace the server by another program. `control`: as in MountProcesses. `program`:
// an absolute path. Returns when the new program serves the mount. Errc::invalid: the supervisor says why not.
Status upgrade_mount(const std::string& control, const std::string& program);

// Returns descriptors that become readable when these processes end. Processes that have ended, or that live in another
// pid namespace, have none.
std::vector<Fd> watch_processes(const MountProcesses& processes);
bool wait_for_ends(std::span<const Fd> processes, std::chrono::milliseconds time);  // false: a process still runs

std::uint64_t pid_namespace();  // of this process; 0 if unknown

}  // namespace weft

// System calls on the entries of a directory that is open here. Names are single components, or paths below the
// directory whose components cannot change meanwhile. No call follows a link as the last component. Messages begin with
// `where`, or with the name if `where` is empty. Any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

Result<struct stat> stat_at(int directory, const std::string& name, std::string_view where = {});
// Returns when an entry was made, in nanoseconds since 1970. It tells a file from a removed one that had its inode
// number. 0: the file system does not record it, or there is no such entry.
std::uint64_t birth_at(int directory, const std::string& name);
Result<struct stat> stat_target_at(int directory, const std::string& name, std::string_view where = {});  // of a link
bool has_entry(int directory, const std::string& name);
Result<Fd> open_at(int directory, const std::string& name, int flags, mode_t mode = 0);
Result<Fd> open_directory_at(int directory, const std::string& name);  // for reading
// Reads a file without waiting for it. Errc::invalid: it is not regular, or has more than `bytes_max` bytes.
Result<std::string> read_text_at(int directory, const std::string& name, std::uint64_t bytes_max,
                                 std::string_view where = {});
Status make_directory_at(int directory, const std::string& name, mode_t mode, std::string_view where = {});
Status ensure_directory_at(int directory, const std::string& name, mode_t mode,
                           std::string_view where = {});                                 // fine if the name is taken
Status make_link_at(int directory, const std::string& name, const std::string& target);  // a symbolic link
Status rename_at(int from, const std::string& name, int to, const std::string& new_name, unsigned flags = 0,
                 std::string_view where = {});
Status link_at(int from, const std::string& name, int to, const std::string& new_name, std::string_view where = {});
Status link_descriptor_at(int fd, int directory, const std::string& name, std::string_view where = {});
Status remove_at(int directory, const std::string& name, int flags = 0, std::string_view where = {});  // AT_REMOVEDIR

// Lists a directory that is open for reading, with "." and "..", from the place `from` on: 0, or the `next` of an
// earlier entry. `add` returns false when it has enough.
Status read_directory(const Fd& directory, off_t from,
                      const std::function<bool(const std::string& name, off_t next)>& add);

// Returns an inotify descriptor, which becomes readable when a file of the directory is written, or renamed into it,
// until forget_events().
Result<Fd> watch_directory(int directory, std::string_view where);
void forget_events(const Fd& watch);

// Creates a file without a name, for writing; it vanishes with its last descriptor unless put_file() names it.
Result<Fd> make_nameless_file(int directory, mode_t mode);
// Gives a nameless file its name. If an entry has the name, the file replaces it by a rename, and has a name of its own
// before.
Status put_file(int fd, int directory, const std::string& name);

// These take any descriptor, also one with O_PATH.
Result<std::string> read_link(int fd);
Status check_access(int fd, int mask);                // of the file itself, with the rights of the calling thread
Status may_write_directory(const std::string& path);  // the calling thread
Status change_mode(int fd, mode_t mode);
Status change_owner(int fd, uid_t uid, gid_t gid);  // -1: unchanged
void give_as(int fd, int directory);                // to the owner of `directory`, if this process is root; best effort
Status change_times(int fd, const timespec times[2]);
Status change_link_times(int directory, const std::string& name, const timespec times[2]);

Status resize_file(int fd, std::uint64_t bytes, std::string_view where);
Status change_blocks(int fd, int mode, off_t offset, off_t length);  // fallocate(2)
Result<off_t> seek_file(int fd, off_t offset, int whence);           // lseek(2)
// Copies the first `bytes` bytes. Shares the blocks of `from` if the file system can.
Status copy_content(int from, int to, std::uint64_t bytes, std::string_view where);
bool is_on_overlay(int fd);

}  // namespace weft

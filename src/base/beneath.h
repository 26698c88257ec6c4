// Files below a directory in which other users may rename, replace and link things while this process works there.
//
// A Beneath holds the directory by a descriptor. Every path is resolved by the kernel from that descriptor: no symbolic
// link is followed in any component, and nothing outside the directory can be reached, whatever is renamed meanwhile
// (openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, Linux 5.6). Removal names the inode that it means. If another
// user swaps the name between the comparison and the removal, the removal takes an entry of this directory that the
// same user could have removed, never an entry elsewhere.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/sys.h"
#include "weft/result.h"

namespace weft {

// What a name led to, so that a later look can tell if it still does.
struct Inode {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Inode&) const = default;
};
Inode inode_of(const struct stat& st);

// Any thread may use a Beneath; it does not change after it was opened. Paths and names are relative. Errors name the
// full path as the user knows it. Errc::invalid: a symbolic link or a path that leads out of the directory.
class Beneath {
 public:
  // Follows links in `path`, once: it is a path by which the user named the directory.
  static Result<Beneath> open(const std::string& path);
  Beneath() = default;  // no directory

  // The directory `path` below this one.
  Result<Beneath> directory(const std::string& path) const;
  // A regular file. Anything else is refused, and opening a FIFO or device does not wait and has no effect on it.
  Result<Fd> open_file(const std::string& path, int flags) const;
  // A new regular file, open for writing. Errc::exists if the name is taken, also by a link.
  Result<Fd> create_file(const std::string& name, mode_t mode) const;
  Status make_directory(const std::string& name, mode_t mode) const;  // Errc::exists if the name is taken
  Result<struct stat> stat(const std::string& name) const;            // of a link, the link
  Result<std::vector<std::string>> list() const;                      // names, sorted, without "." and ".."
  // Moves `name` into another directory of the file system under the same name. Errc::exists rather than replace.
  Status move_new(const std::string& name, const Beneath& to) const;
  // Removes a file or link, or an empty directory, if `name` still leads to `inode`; else does nothing.
  Status remove(const std::string& name, Inode inode) const;
  Status sync() const;              // the names in this directory
  Status sync_file_system() const;  // all that was written to its file system, also by others

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  Beneath(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  std::string where(const std::string& name) const { return path_ + "/" + name; }
  Result<Fd> open_at(const std::string& path, int flags, mode_t mode) const;

  Fd fd_;
  std::string path_;
};

}  // namespace weft

// Files below a directory in which other users may rename, replace and link things while this process works there.
//
// A Beneath holds the directory by a descriptor. The kernel resolves every path from that descriptor: it follows no
// symbolic link in any component and reaches nothing outside the directory, whatever is renamed meanwhile (openat2 with
// RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, Linux 5.6). Where a system call cannot be told this, the directory that the
// last name lies in is opened so, and the call gets its descriptor and that name alone. safe_path.h has paths on top of
// it that are values.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// The inode that a name led to. A later comparison tells if the name still leads there.
struct Inode {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Inode&) const = default;
};
Inode inode_of(const struct stat& st);

struct OpenedFile {
  Fd fd;
  struct stat st {};
};

// The owner rule is off for the rest of this process: `--trust-store` (weft.7). Before threads start.
void trust_all_owners();
bool trusts_all_owners();

// Any thread may use a Beneath; it does not change after it was opened. Paths are relative and may have several
// components; "." is the directory itself. Errors name the full path as the user knows it. Errc::invalid, or
// Errc::corrupt below a directory with an owner rule: a symbolic link, a path that leads out of the directory, a file
// that is no regular file, or a file of another owner.
class Beneath {
 public:
  // Follows links in `path`, once: it is a path by which the user named the directory.
  static Result<Beneath> open(const std::string& path);
  // With the owner rule: a file is opened only if it belongs to the owner of this directory. What root makes below it
  // is given to that owner, and other users make nothing.
  static Result<Beneath> open_owned(const std::string& path);
  Beneath() = default;  // no directory

  // The directory `path` below this one, with the same owner rule.
  Result<Beneath> directory(const std::string& path) const;
  // A regular file. Anything else is refused, and opening a FIFO or device does not wait and has no effect on it.
  Result<Fd> open_file(const std::string& path, int flags, mode_t mode = 0644) const;
  Result<OpenedFile> open_with_stat(const std::string& path, int flags, mode_t mode = 0644) const;
  // A socket, without a connection to it (O_PATH). Checked as a file is.
  Result<Fd> open_socket(const std::string& path) const;
  // One that this process has just made: now it belongs to the owner.
  Result<Fd> open_made_socket(const std::string& path) const;
  Result<Fd> open_directory(const std::string& path) const;
  Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) const;
  Status make_directory(const std::string& path, mode_t mode) const;     // Errc::exists if the name is taken
  Result<struct stat> stat(const std::string& path) const;               // of a link, the link
  Result<std::vector<std::string>> list(const std::string& path) const;  // names, sorted, without "." and ".."
  Result<std::vector<std::string>> list() const { return list("."); }
  // From here to a path below another directory of the same file system.
  Status rename(const std::string& from, const Beneath& other, const std::string& to) const;
  Status rename_new(const std::string& from, const Beneath& other, const std::string& to) const;  // Errc::exists
  Status link(const std::string& from, const Beneath& other, const std::string& to) const;        // Errc::exists
  Status unlink(const std::string& path) const;       // fine when it is not there
  Status remove_tree(const std::string& path) const;  // does not cross mounts; fine when it is not there
  // Removes a file or link, or an empty directory, if `path` still leads to `inode`; else does nothing. If another user
  // swaps the name between the comparison and the removal, the removal takes an entry of this directory that the same
  // user could have removed, never an entry elsewhere.
  Status remove(const std::string& path, Inode inode) const;
  Status sync(const std::string& path) const;  // the names in the directory `path`
  Status sync() const { return sync("."); }
  Status sync_file_system() const;  // all that was written to its file system, also by others

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  std::optional<uid_t> owner() const { return owner_; }  // with the owner rule alone

 private:
  struct Leaf {
    Fd held;  // none: the directory is this one
    int directory = -1;
    std::string name;
  };
  Beneath(Fd fd, std::string path, std::optional<uid_t> owner)
      : fd_(std::move(fd)), path_(std::move(path)), owner_(owner) {}
  std::string where(const std::string& path) const { return path == "." ? path_ : path_ + "/" + path; }
  Error open_error(int error_number, const std::string& path) const;
  Error refused(const std::string& path, std::string_view why) const;
  Result<Fd> open_at(const std::string& path, int flags, mode_t mode) const;
  Result<OpenedFile> open_there(const std::string& path, int flags) const;
  Result<OpenedFile> create(const std::string& path, int flags, mode_t mode) const;
  Result<OpenedFile> find_socket(const std::string& path) const;
  Status check_owner(const struct stat& st, const std::string& path) const;
  Status give(int fd, const std::string& path) const;  // to the owner, what this process has made
  Result<Leaf> leaf(const std::string& path) const;

  Fd fd_;
  std::string path_;
  std::optional<uid_t> owner_;
};

}  // namespace weft

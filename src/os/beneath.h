// Files below a directory in which other users may rename, replace and link files while this process works there.
//
// A Beneath holds the directory by a descriptor. The kernel resolves every path from that descriptor: it follows no
// symbolic link in any component and reaches nothing outside the directory, whatever is renamed meanwhile (openat2 with
// RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, Linux 5.6). For a system call without such flags, the parent directory is
// opened this way, and the call gets the parent's descriptor and the last name alone. safe_path.h builds paths as
// values on it.
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

// The inode that a name led to. Compare it later to see whether the name still leads to the same inode.
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

// Turns the owner rule off for the rest of this process: `--trust-store` (weft.7). Call it before threads start.
void trust_all_owners();
bool trusts_all_owners();

// Any thread may use a Beneath; it does not change after open(). Paths are relative and may have several components;
// "." is the directory itself. Errors name the full path as the user knows it. Errc::invalid, or Errc::corrupt with an
// owner rule: a symbolic link, a path that leads out of the directory, a file that is not regular, or a file of another
// owner.
class Beneath {
 public:
  // Follows links in `path`, once: the user named the directory by this path.
  static Result<Beneath> open(const std::string& path);
  // With the owner rule: a file is opened only if it belongs to the owner of this directory. Files that root creates
  // below the directory are given to that owner; other users cannot create any.
  static Result<Beneath> open_owned(const std::string& path);
  Beneath() = default;  // no directory

  // Returns the directory `path` below this one, with the same owner rule.
  Result<Beneath> directory(const std::string& path) const;
  // Opens a regular file and refuses anything else. Opening a FIFO or a device does not wait and has no effect on it.
  Result<Fd> open_file(const std::string& path, int flags, mode_t mode = 0644) const;
  Result<OpenedFile> open_with_stat(const std::string& path, int flags, mode_t mode = 0644) const;
  // Returns an O_PATH descriptor of a socket, without a connection. The owner rule applies as to a file.
  Result<Fd> open_socket(const std::string& path) const;
  // Opens a socket that this process has just made, and gives it to the owner.
  Result<Fd> open_made_socket(const std::string& path) const;
  Result<Fd> open_directory(const std::string& path) const;
  Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) const;
  Status make_directory(const std::string& path, mode_t mode) const;     // Errc::exists if the name is taken
  Result<struct stat> stat(const std::string& path) const;               // does not follow a link
  Result<std::vector<std::string>> list(const std::string& path) const;  // names, sorted, without "." and ".."
  Result<std::vector<std::string>> list() const { return list("."); }
  // Source: a path below this directory. Target: a path below `other`, on the same file system.
  Status rename(const std::string& from, const Beneath& other, const std::string& to) const;
  Status rename_new(const std::string& from, const Beneath& other, const std::string& to) const;  // Errc::exists
  Status link(const std::string& from, const Beneath& other, const std::string& to) const;        // Errc::exists
  Status unlink(const std::string& path) const;       // fine if it is absent
  Status remove_tree(const std::string& path) const;  // does not cross mounts; fine if the path is absent
  // Removes a file, a link or an empty directory if `path` still leads to `inode`; else does nothing. If another user
  // swaps the name between the comparison and the removal, the call removes an entry of this directory that the same
  // user could have removed, never an entry elsewhere.
  Status remove(const std::string& path, Inode inode) const;
  Status sync(const std::string& path) const;  // syncs the names in the directory `path`
  Status sync() const { return sync("."); }
  Status sync_file_system() const;  // syncfs(2): covers data of other processes too

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  std::optional<uid_t> owner() const { return owner_; }  // set only with the owner rule

 private:
  struct Leaf {
    Fd held;  // empty: the directory is this one
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
  Status give(int fd, const std::string& path) const;  // gives a new file to the owner
  Result<Leaf> leaf(const std::string& path) const;

  Fd fd_;
  std::string path_;
  std::optional<uid_t> owner_;
};

}  // namespace weft

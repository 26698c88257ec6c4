// The files below new/, which are the files below STORE/drafts/tree, one to one. Every call is the kernel's own on
// these files: with the rights of the calling thread (caller.h), and with its answer, so that a program sees what it
// would see on the file system that the store lies on. Each call returns 0, or an errno with a minus sign.
//
// A number (weft/vfs.h) holds the inode number of the file. The tree remembers where each number lies. What it does not
// know, or finds elsewhere, it looks for in the whole tree: so a new server knows the numbers that another one gave.
// Any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "os/sys.h"
#include "weft/result.h"
#include "weft/vfs.h"

namespace weft {

struct DraftFound {
  Ino ino = 0;
  struct stat st {};
};

class DraftTree {
 public:
  // Makes the folder, which its owner alone can enter by path, and `new/` in it, which all can write to.
  static Result<std::unique_ptr<DraftTree>> open(const std::string& store);

  int lookup(Ino dir, const char* name, DraftFound& found);
  int stat(Ino ino, struct stat& st);
  int read_link(Ino ino, std::string& target);
  // The entries from `offset` on, which the file system gave with an entry before; 0: all. `add` returns false when it
  // has enough. "." and ".." are among them.
  using AddEntry = std::function<bool(std::string_view name, const DraftFound& entry, off_t next)>;
  int list(Ino dir, off_t offset, const AddEntry& add);
  int access(Ino ino, int mask);

  // For reading or writing as `flags` say; never makes a file.
  int open(Ino ino, int flags, Fd& fd);
  // In new/ itself and in the folder of a namespace, what is made is its maker's alone, whatever `mode` says.
  int create(Ino dir, const char* name, int flags, mode_t mode, DraftFound& made, Fd& fd);
  // A file of a checkpoint may be one of a version too (checkpoints.h): it has another name elsewhere, or is the
  // store's. Before it is changed, its name gets a file of the user's: a copy, or an empty one. 0: it is the user's
  // own. -ESTALE: it is now, and the kernel looks it up again.
  int own(Ino ino, bool empty);
  std::uint64_t bytes_to_copy(Ino ino);  // by own()
  // Once what create() made is open: gives it the mode that was asked for.
  int finish_creating(Ino dir, mode_t mode, DraftFound& made);
  int make_directory(Ino dir, const char* name, mode_t mode, DraftFound& made);
  int make_link(Ino dir, const char* name, const char* target, DraftFound& made);
  int remove(Ino dir, const char* name, int flags);  // AT_REMOVEDIR
  int rename(Ino dir, const char* name, Ino new_dir, const char* new_name, unsigned flags);

  // These change the file itself. They follow no link.
  int set_mode(Ino ino, mode_t mode);
  int set_owner(Ino ino, uid_t uid, gid_t gid);  // -1: as it is
  int set_times(Ino ino, const timespec times[2]);

  // All users share new/ itself and the folders of namespaces. The calling thread may make such a folder. What has
  // its name stays as it is.
  bool is_shared(Ino dir);
  int share(Ino dir, const char* name, DraftFound& found);
  // Makes one of a directory that somebody has made; the drafts in it become their makers' alone. Best effort.
  void share_directory(Ino dir);

  int parent(Ino ino, Ino& dir);
  // From new/ down: "org/m"; "" of new/ itself.
  int path(Ino ino, std::string& out);
  // A file that is open here, by this descriptor, from opened() to closed(): it counts even if it loses its name.
  void opened(int fd);
  void closed(int fd);
  // The sizes of all files that are no version's, together. With the rights of this process.
  std::uint64_t bytes();
  // A held directory, by which names in it are reached.
  int open_directory(Ino ino, Fd& fd);
  // The store lies on overlayfs, where a mapping of a file is one of another file: nobody is told of a writer's then.
  bool hides_mappings() const { return hides_mappings_; }
  int folder() const { return folder_.get(); }  // STORE/drafts
  uid_t owner_of_packs() const { return owner_of_packs_; }

 private:
  struct Place {
    Ino dir = 0;
    std::string name;
  };

  DraftTree(Fd folder, Fd root, const struct stat& st, uid_t owner_of_packs);
  int open_there(Ino ino, int flags, Fd& fd, struct stat& st);
  int reach(Ino ino, int flags, Fd& fd, struct stat& st);
  int known_path(Ino ino, std::string& out);
  bool is_others(const Fd& file, const struct stat& st) const;
  bool counts(const struct stat& st) const;
  int replace_by_copy(Ino ino, int original, bool empty);
  int found_at(int directory, Ino dir, const char* name, DraftFound& found);
  Ino number_of(const struct stat& st) const;
  void remember(Ino ino, Ino dir, std::string_view name);
  void forget(Ino ino);
  std::uint64_t look_through(int directory, Ino dir, unsigned depth);
  mode_t allowed(Ino dir, mode_t mode);

  const Fd folder_;
  const Fd root_;
  const struct stat root_st_;
  const uid_t owner_of_packs_;
  const bool hides_mappings_;
  std::mutex mutex_;
  std::unordered_map<Ino, Place> places_;  // guarded by mutex_
  std::set<int> open_;                     // guarded by mutex_
};

}  // namespace weft

// The files below new/, which are those below STORE/drafts/tree. Each call is a system call on these files, with the
// rights of the calling thread (caller.h) and with the kernel's answer: a program sees what it would see on the store's
// file system. Each call returns 0 or a negative errno.
//
// A number (weft/vfs.h) holds the inode number of the file. The tree caches the place of each number. If a number is
// unknown or has moved, it searches the whole tree: so a new server can use the numbers of an earlier one. Any thread.
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
  // Creates STORE/drafts, which only its owner can enter by path, and the tree in it, which all users can write to.
  static Result<std::unique_ptr<DraftTree>> open(const std::string& store);

  int lookup(Ino dir, const char* name, DraftFound& found);
  int stat(Ino ino, struct stat& st);
  int read_link(Ino ino, std::string& target);
  // Lists the entries after `offset`, which the file system gave with an earlier entry; 0: all. `add` returns false
  // when it has enough. "." and ".." are included.
  using AddEntry = std::function<bool(std::string_view name, const DraftFound& entry, off_t next)>;
  int list(Ino dir, off_t offset, const AddEntry& add);
  int access(Ino ino, int mask);

  // Opens a file for reading or writing as `flags` say; never creates one.
  int open(Ino ino, int flags, Fd& fd);
  // Creates a file. In new/ and in namespaces, only its maker gets access, whatever `mode` says.
  int create(Ino dir, const char* name, int flags, mode_t mode, DraftFound& made, Fd& fd);
  // Makes a file the user's own before a change. A file of a checkpoint may belong to a version too (checkpoints.h): it
  // has another hard link, or is the store's. Its name then gets a new file of the user: a copy, or an empty one if
  // `empty`. 0: the file was the user's own. -ESTALE: it was replaced, and the kernel looks it up again.
  int own(Ino ino, bool empty);
  std::uint64_t bytes_to_copy(Ino ino);  // bytes that own() would copy
  // Call once the result of create() is open: sets the requested mode.
  int finish_creating(Ino dir, mode_t mode, DraftFound& made);
  int make_directory(Ino dir, const char* name, mode_t mode, DraftFound& made);
  int make_link(Ino dir, const char* name, const char* target, DraftFound& made);
  int remove(Ino dir, const char* name, int flags);  // AT_REMOVEDIR or 0
  int rename(Ino dir, const char* name, Ino new_dir, const char* new_name, unsigned flags);

  // These change the file itself. They follow no link.
  int set_mode(Ino ino, mode_t mode);
  int set_owner(Ino ino, uid_t uid, gid_t gid);  // -1: unchanged
  int set_times(Ino ino, const timespec times[2]);

  // All users share new/ itself and the directories of namespaces. share() creates such a directory if the calling
  // thread may; an existing entry of that name stays.
  bool is_shared(Ino dir);
  int share(Ino dir, const char* name, DraftFound& found);
  // Makes an existing directory a shared one. The drafts in it become their makers' alone. Best effort.
  void share_directory(Ino dir);

  int parent(Ino ino, Ino& dir);
  // The path from new/ down, as "org/m"; "" for new/ itself.
  int path(Ino ino, std::string& out);
  // Registers a file that is open here by this descriptor, until closed(): it counts even if it loses its name.
  void opened(int fd);
  void closed(int fd);
  // The total size of all files that belong to no version. Call with the rights of this process.
  std::uint64_t bytes();
  // Opens a directory with O_PATH, to access its entries.
  int open_directory(Ino ino, Fd& fd);
  // True if the store is on overlayfs. A mapping there is one of another file, so a writer's mapping is not detected.
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

// The files below new/, which are those below STORE/drafts/tree. Each call is a system call on these files, with the
// rights of the calling thread (os/acting_as.h). An Error carries the kernel's errno: a program sees what it would see
// on the store's file system.
//
// The tree caches the place of each number (draft_places.h). If a number is unknown or has moved, it searches the whole
// tree: so a new server can use the numbers of an earlier one.
//
// A path has at most limits::kPathComponentsMax components. No call makes or moves an entry beyond that (ELOOP): no
// number would lead there. Any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "drafts/draft_places.h"
#include "drafts/draft_rules.h"
#include "os/beneath.h"
#include "os/sys.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

struct DraftCreated {
  DraftFound found;
  Fd fd;
};

class DraftTree {
 public:
  // Creates STORE/drafts, which only its owner can enter by path, and the tree in it, which all users can write to.
  static Result<std::unique_ptr<DraftTree>> open(const std::string& store);

  Result<DraftFound> lookup(Ino dir, const std::string& name);
  Result<struct stat> stat(Ino ino);
  Result<std::string> read_link(Ino ino);
  // Lists the entries after `offset`, which the file system gave with an earlier entry; 0: all. `add` returns false
  // when it has enough. "." and ".." are included. Generations are left out: a listing makes no nodes.
  using AddEntry = std::function<bool(const std::string& name, const DraftFound& entry, off_t next)>;
  Status list(Ino dir, off_t offset, const AddEntry& add);
  Status access(Ino ino, int mask);

  // Opens a file for reading or writing as `flags` say; never creates one.
  Result<Fd> open(Ino ino, int flags);
  // Opens a directory for reading its entries, or with O_PATH, to access them.
  Result<Fd> open_to_list(Ino ino);
  Result<Fd> open_directory(Ino ino);
  // Creates a file. In new/ and in namespaces, only its maker gets access, whatever `mode` says.
  Result<DraftCreated> create(Ino dir, const std::string& name, int flags, mode_t mode);
  // Makes a file the user's own before a change. A file with another hard link may belong to a version (checkpoints.h)
  // or to another draft (link_draft), and a file of the store to a version. Its name then gets a new file of the user:
  // a copy, or an empty one if `empty`. Errc::changed: it was replaced, and the kernel looks it up again.
  Status own(Ino ino, bool empty);
  std::uint64_t bytes_to_copy(Ino ino);  // bytes that own() would copy
  // Call once the result of create() is open: sets the requested mode.
  Status finish_creating(Ino dir, mode_t mode, DraftFound& made);
  Result<DraftFound> make_directory(Ino dir, const std::string& name, mode_t mode);
  Result<DraftFound> make_link(Ino dir, const std::string& name, const std::string& target);
  Status remove(Ino dir, const std::string& name, int flags);  // AT_REMOVEDIR or 0
  // Renames with the rights of `user`; call it with those of this process.
  Status rename(const UserIds& user, Ino dir, const std::string& name, Ino new_dir, const std::string& new_name,
                unsigned flags);

  // These change the file itself. They follow no link.
  Status set_mode(Ino ino, mode_t mode);
  Status set_owner(Ino ino, uid_t uid, gid_t gid);  // -1: unchanged
  Status set_times(Ino ino, const timespec times[2]);

  // All users share new/ itself and the directories of namespaces. share() creates such a directory if the calling
  // thread may; an existing entry of that name stays.
  bool is_shared(Ino dir);
  Result<DraftFound> share(Ino dir, const std::string& name);
  // Makes an existing directory a shared one. The drafts in it become their makers' alone. Best effort.
  void share_directory(Ino dir);

  const DraftPlaces& places() const { return places_; }  // of the entries found so far
  // Registers a file that is open here by this descriptor, until closed(): it counts even if it loses its name.
  void opened(int fd);
  void closed(int fd);
  // Visits all drafts by their directory and name. Caches their places, and returns the use by all files that belong to
  // no version. Call with the rights of this process: a user needs none for a number to be found again.
  using Visit = std::function<void(Ino dir, const std::string& name)>;
  DraftUse search(const Visit& visit = {});
  // As search(), with the open files that have no name any more.
  DraftUse use();
  // True if the store is on overlayfs. A mapping there is one of another file, so a writer's mapping is not detected.
  bool hides_mappings() const { return hides_mappings_; }
  int folder() const { return folder_.get(); }  // STORE/drafts

 private:
  DraftTree(Fd folder, Fd root, const struct stat& st, DraftRules rules);
  Result<OpenedFile> open_there(Ino ino, int flags);
  Result<OpenedFile> reach(Ino ino, int flags);
  bool is_others(const OpenedFile& file) const;
  Status replace_by_copy(Ino ino, int original, bool empty);
  Result<DraftFound> found_at(int directory, Ino dir, const std::string& name);
  mode_t allowed(Ino dir, mode_t mode);

  const Fd folder_;
  const Fd root_;
  const struct stat root_st_;
  const DraftRules rules_;
  const bool hides_mappings_;
  DraftPlaces places_;
  Mutex mutex_;
  std::set<int> open_ WEFT_GUARDED_BY(mutex_);
};

// Gives a file of the user a second name. A change by one of its names first gives that name a file of its own
// (DraftTree::own). Errc::permission: the file is another user's.
Result<DraftFound> link_draft(DraftTree& tree, const UserIds& user, Ino ino, Ino dir, const std::string& name);

}  // namespace weft

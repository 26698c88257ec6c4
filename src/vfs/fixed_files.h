// README, .weft and the files of .weft: every mount has them, whatever the store contains. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "control/client.h"
#include "vfs/assembly.h"
#include "vfs/subtree.h"

namespace weft {

// Reports of the store's daemon on itself. A daemon that hangs costs half a second per question.
class DaemonTexts {
 public:
  explicit DaemonTexts(const std::string& store_path);
  std::string status();   // JSON; "null" if no daemon answers
  std::string peers();    // as status(), with a line end
  std::string metrics();  // Prometheus text; a comment if no daemon answers

 private:
  Result<control::Answer> ask(std::string_view what);
  std::string json(std::string_view what);
  control::Link link_;
};

// Also lists the root, with the directories that belong to other subtrees.
class FixedFiles final : public Subtree {
 public:
  struct Entry {
    Ino ino;
    Ino parent;
    std::string_view name;
    FileType type;
  };
  // Returns the attributes of a directory of the root that another subtree owns.
  using Foreign = std::function<Result<Attr>(Ino)>;
  FixedFiles(Store& store, const VfsAssembly& assembly, const VfsOptions& options, Foreign foreign)
      : store_(store),
        daemon_(store.path()),
        assembly_(assembly),
        publishes_(options.publishes),
        foreign_(std::move(foreign)) {}

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<DirPage> list(const MountInode& dir, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  void set_mount_status(std::function<std::string()> json_members);

 private:
  Result<Attr> entry_attr(const Entry& entry);
  Result<std::string> status_text();
  Result<std::string> changing_text(Ino ino);

  Store& store_;
  DaemonTexts daemon_;
  const VfsAssembly& assembly_;
  const bool publishes_;
  std::mutex mutex_;
  std::function<std::string()> mount_status_ = [] { return std::string(); };  // guarded by mutex_
  const Foreign foreign_;
};

}  // namespace weft

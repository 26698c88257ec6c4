// The entries that every mount has whatever is stored: the root, README, models, and .weft with files that say
// something else each time. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reading/open_file.h"
#include "vfs/daemon_texts.h"
#include "vfs/version.h"
#include "weft/result.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {

struct FixedEntry {
  Ino ino;
  Ino parent;
  std::string_view name;
  FileType type;
};
const FixedEntry* fixed_entry(Ino ino);  // null: it is none of them

class FixedFiles {
 public:
  FixedFiles(Store& store, Versions& versions, std::string mount_status)
      : store_(store), daemon_(store.path()), versions_(versions), mount_status_(std::move(mount_status)) {}

  Result<Attr> attr(const FixedEntry& entry);
  Result<Attr> lookup(const FixedEntry& dir, std::string_view name);
  Result<std::vector<DirEntry>> list(const FixedEntry& dir);
  Result<std::shared_ptr<OpenFile>> open(const FixedEntry& entry);
  void set_mount_status(std::string json_members);

 private:
  Result<std::string> status_text();
  Result<std::string> changing_text(Ino ino);

  Store& store_;
  DaemonTexts daemon_;
  Versions& versions_;
  std::mutex mutex_;
  std::string mount_status_;  // guarded by mutex_
};

}  // namespace weft

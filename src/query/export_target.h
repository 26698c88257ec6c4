// The directory that an export writes into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "os/beneath.h"
#include "weft/result.h"

namespace weft {

// Other users may own the directory and rename or replace everything in it at any time. So files are written in a
// hidden directory of mode 0700 there, reached by descriptors alone, and publish() moves its entries into place.
// Of what it made, the destructor removes what was not published, if each name still leads to the same inode.
class ExportTarget {
 public:
  // Makes the directory if it is not there. Errc::exists: it is not empty.
  static Result<ExportTarget> open(const std::string& path);
  ExportTarget(ExportTarget&&) = default;
  ExportTarget& operator=(ExportTarget&&) = delete;
  ~ExportTarget();

  // A new file with the directories above it. Paths are relative, come in byte order and outlive this object.
  Result<Fd> create(std::string_view path);
  // Makes everything durable with one sync of the file system, then visible. If it fails, nothing stays visible.
  Status publish();

 private:
  ExportTarget() = default;
  struct Made {
    std::string_view path;  // below stage_
    Inode inode;
  };
  struct Open {
    std::string_view path;
    Beneath directory;
  };
  Status make(const std::string& path);
  Status make_stage();
  Status enter(std::string_view directory);
  Status move_entries();
  void move_back();
  void remove_made() const;

  Beneath parent_;    // of target_, if this object made target_
  std::string name_;  // of target_ in parent_
  Beneath target_;
  Inode target_inode_;
  std::string stage_name_;  // in target_
  Beneath stage_;
  Inode stage_inode_;
  std::vector<Made> made_;   // in the order in which they were made
  std::vector<Open> open_;   // the directory of the last file and those above it, from the top
  std::vector<Made> moved_;  // entries of stage_ that are in target_ now
  bool published_ = false;
};

}  // namespace weft

// The directory that an export writes into.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/export_place.h"
#include "os/beneath.h"
#include "weft/result.h"

namespace weft {

// Other users may own the directory and rename or replace everything in it at any time. So files are written in a
// hidden directory of mode 0700 there, reached by descriptors alone, and publish() moves its entries into place.
// Without a successful publish(), the destructor removes everything that this object made, if each name still leads to
// the same inode.
class ExportTarget final : public ExportPlace {
 public:
  // Opens the directory, or makes it. Errc::exists: it is not empty.
  static Result<ExportTarget> open(const std::string& path);
  ExportTarget(ExportTarget&&) = default;
  ExportTarget& operator=(ExportTarget&&) = delete;
  ~ExportTarget() override;

  Result<bool> reuse(const ExportedFile& /*file*/) override { return false; }
  Result<Fd> create(const ExportedFile& file) override;
  Status complete(const ExportedFile& /*file*/, const Fd& /*written*/) override { return {}; }
  Status make_directory(std::string_view path) override { return enter(path); }
  // Syncs the file system once. After a failure no file stays visible.
  Status publish() override;

 private:
  ExportTarget() = default;
  struct Made {
    std::string_view path;  // relative to stage_
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

  Beneath parent_;    // the parent of target_; closed if target_ existed before
  std::string name_;  // the name of target_ in parent_
  Beneath target_;
  Inode target_inode_;
  std::string stage_name_;  // the name of stage_ in target_
  Beneath stage_;
  Inode stage_inode_;
  std::vector<Made> made_;   // files and directories in the order of their creation
  std::vector<Open> open_;   // the directory of the last file and its parents, outermost first
  std::vector<Made> moved_;  // entries of stage_ that were moved to target_
  bool published_ = false;
};

}  // namespace weft

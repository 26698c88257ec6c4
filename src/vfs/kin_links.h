// lineage/parents and lineage/children of a version: links to other versions, by the names <model>@<number> with each
// '/' of the model as %2F. Only live versions are shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/subtree.h"
#include "weft/result.h"
#include "weft/snapshot.h"
#include "weft/store_rows.h"
#include "weft/vfs.h"

namespace weft {

enum class Kin : std::uint8_t { parent, child };

// "org%2Fbert@2"
std::string kin_name(const VersionRow& version);
Result<std::vector<VersionRow>> live_kin(Snapshot& snapshot, const VersionRow& version, Kin kin);  // each once

Result<Attr> lookup_kin(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view name);
Result<std::vector<DirEntry>> list_kin(Snapshot& snapshot, const VersionRow& version, Kin kin);

// The links themselves. A link's number says which one it is.
class KinLinks final : public Subtree {
 public:
  explicit KinLinks(Store& store) : store_(store) {}
  Result<Attr> attr(const MountInode& inode) override;
  Result<std::string> readlink(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override { return is_a_link(inode.ino); }

 private:
  Store& store_;
};

}  // namespace weft

// The generated files of a version's lineage/: ancestors, descendants, log, graph.svg, graph.dot, owners.tsv, and
// diff/<parent>. They are no nodes of its tree: what they say changes when kin are published or removed, and then they
// are other files, with other inode numbers, which a lookup gives from then on. So each inode's bytes never change: the
// kernel may keep them, and who has one open goes on reading what he opened.
//
// A number says which file it is, of which version, as of which tick of the lineage clock (numbers.h). Bytes
// follow from the number alone, also after a restart. owners.tsv and diff/ do not depend on the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lru_cache.h"
#include "vfs/subtree.h"
#include "weft/node.h"

namespace weft {

// Any thread.
class KinFiles final : public Subtree {
 public:
  // Returns the directory lineage/ of a version.
  using LineageOf = std::function<Result<Ino>(VersionId)>;
  KinFiles(Store& store, LineageOf lineage_of) : store_(store), lineage_of_(std::move(lineage_of)) {}

  // Entries of lineage/ of a version, but for those that its tree has.
  Result<Attr> lookup_of(const VersionRow& version, std::string_view name);
  Result<std::vector<DirEntry>> list_of(const VersionRow& version);

  Result<Attr> attr(const MountInode& inode) override { return attr_of(inode.ino); }
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<std::vector<DirEntry>> list(const MountInode& dir) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  // Most files come from what stays of removed versions too: they need none.
  Result<FileVersions> versions(const MountInode& inode) override;

 private:
  using Text = std::shared_ptr<const std::string>;
  Result<Attr> attr_of(Ino ino);
  Result<Text> text(Ino ino);
  Result<std::string> render(Ino ino);
  Result<std::string> render_kin(Ino ino);
  Result<std::string> render_diff_of(VersionId child, VersionId parent);
  Result<VersionRow> version(VersionId id);
  Result<Ino> current(const VersionRow& version, unsigned file);

  Store& store_;
  const LineageOf lineage_of_;
  LruCache<std::string> texts_{8U << 20U};
};

}  // namespace weft

// lineage/<model>/<version>/ and its contents: texts (lineage_texts.h), SHA256SUMS (sums_file.h), and parents/,
// children/ and diff/, which have an entry for each live parent or child (kin_links.h). A listing renders no text. So
// it also shows texts that cannot be rendered now.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/kin_links.h"
#include "vfs/lineage_texts.h"
#include "vfs/numbers.h"
#include "vfs/subtree.h"

namespace weft {

constexpr Ino lineage_ino(LineageEntry entry, VersionId version) {
  return ino_of(InoKind::lineage_entry, static_cast<std::uint64_t>(entry), version);
}
constexpr Ino lineage_dir_ino(VersionId version) {
  return lineage_ino(LineageEntry::dir, version);
}

// Any thread.
class Lineage final : public Subtree {
 public:
  Lineage(Store& store, Versions& versions) : store_(store), versions_(versions), texts_(store, versions) {}

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<DirPage> list(const MountInode& dir, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::string> readlink(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  // Kin files and graph.svg need no versions: they are drawn from records, which removed versions keep.
  Result<FileVersions> versions(const MountInode& inode) override;

 private:
  Result<VersionRow> version(VersionId id);
  Result<Attr> dir_attr(const VersionRow& version, LineageEntry entry);
  Result<Attr> file_attr(Ino ino);
  Result<Attr> sums_attr(Ino ino);
  Result<Attr> edge_attr(const VersionRow& version, LineageEntry dir, const KinEntry& edge);
  Result<std::vector<DirEntry>> list_version(const VersionRow& version);
  Result<DirPage> list_edges(const VersionRow& version, LineageEntry dir, ListPlace from);

  Store& store_;
  Versions& versions_;
  LineageTexts texts_;
};

}  // namespace weft

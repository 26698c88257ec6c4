// The generated files of a version's lineage/: ancestors, descendants, log, graph.svg, graph.dot, owners.tsv, and
// diff/<parent>. They are no nodes of its tree: what they say changes when kin are published or removed, and then they
// are other files, with other inode numbers, which a lookup gives from then on. So each inode's bytes never change: the
// kernel may keep them, and who has one open goes on reading what he opened.
//
// A number says which file it is, of which version, as of which tick of the lineage clock (kKinFileBit below). Bytes
// follow from the number alone, also after a restart. owners.tsv and diff/ do not depend on the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/lru_cache.h"
#include "weft/node.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {

// Bit 62 is that of links (kLineageLinkBit) and is not set. Bit 60: of diff/, with 30 bits of version and 30 of the
// parent, 0 for the directory. Else 3 bits of file, 27 of version, 30 of clock.
inline constexpr Ino kKinFileBit = Ino{1} << 61U;
bool is_kin_file(Ino ino);

// Any thread.
class KinFiles {
 public:
  explicit KinFiles(Store& store) : store_(store) {}

  // Entries of lineage/ of a version, but for those that its tree has.
  Result<Attr> lookup(const VersionRow& version, std::string_view name);
  Result<std::vector<DirEntry>> list(const VersionRow& version);

  Result<Attr> attr(Ino ino);
  Result<std::shared_ptr<OpenFile>> open(Ino ino);
  // Of a diff/.
  Result<Attr> lookup_in(Ino dir, std::string_view name);
  Result<std::vector<DirEntry>> list_in(Ino dir);
  // The version in whose lineage/ it is.
  static VersionId version_of(Ino ino);
  // Those whose content its bytes come from. Most files come from what stays of removed versions too.
  static FileVersions versions_of(Ino ino);

 private:
  using Text = std::shared_ptr<const std::string>;
  Result<Text> text(Ino ino);
  Result<std::string> render(Ino ino);
  Result<std::string> render_kin(Ino ino);
  Result<std::string> render_diff_of(VersionId child, VersionId parent);
  Result<VersionRow> version(VersionId id);
  Result<Ino> current(const VersionRow& version, unsigned file);

  Store& store_;
  LruCache<std::string> texts_{8U << 20U};
};

}  // namespace weft

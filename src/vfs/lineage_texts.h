// The texts of lineage/<model>/<version>/: info.json, owners.tsv, diff/<parent>, and the files that are drawn from the
// version's kin: ancestors, descendants, log, graph.svg. A file of kin shows another text after kin were published or
// removed. It then has another inode number, which a lookup gives from then on, so the bytes of one number never
// change: the kernel may keep them, and a reader that has the file open goes on reading what it opened. The bytes
// follow from the number alone, also after a restart.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/lru_cache.h"
#include "vfs/numbers.h"
#include "vfs/versions.h"
#include "weft/node.h"
#include "weft/snapshot.h"
#include "weft/store.h"

namespace weft {

struct LineageText {
  std::string text;
  std::uint64_t time_ns = 0;  // when it became as it is
};

// Files of kin, by KinFileNumber::file.
inline constexpr unsigned kKinFileCount = 4;
std::string_view kin_file_name(unsigned file);

// Any thread.
class LineageTexts {
 public:
  using Text = std::shared_ptr<const LineageText>;
  LineageTexts(Store& store, Versions& versions) : store_(store), versions_(versions) {}

  Result<Text> find(Ino ino);  // of a kin_file, a diff, or the lineage_entry of info.json or owners.tsv
  // The number that a file of kin has by what is published and removed now.
  Result<Ino> current(VersionId version, unsigned file);

 private:
  Result<LineageText> render(Ino ino);
  Result<LineageText> render_entry(Ino ino);
  Result<LineageText> render_kin(Ino ino);
  Result<LineageText> render_diff_of(Ino ino);

  Result<std::string> render_info(const VersionRow& version);

  Store& store_;
  Versions& versions_;  // the tables of data sets
  LruCache<LineageText> texts_{8U << 20U};
};

}  // namespace weft

// The texts of lineage/<model>/<version>/: info.json, owners.tsv, diff/<parent>, and the kin files, which are drawn
// from the version's kin: ancestors, descendants, log. The text of a kin file changes when kin are published,
// removed or undeleted. The file then has another inode number, which later lookups return. So the bytes of one number
// never change: the kernel may cache them, and a reader with the file open keeps the text that it opened. The bytes
// follow from the number alone, also after a restart. They show names, messages and metrics as they are now, which a
// change gives another number too. graph.svg is no kin file: it has tags, metrics and new bytes too, which change
// without a publish, and so each open gets the present picture. Each open of info.json, owners.tsv and of a diff gets
// the present names of models, and the present message and metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/lru_cache.h"
#include "vfs/numbers.h"
#include "vfs/versions.h"
#include "weft/programs/operations.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

struct LineageText {
  std::string text{};
  std::uint64_t time_ns = 0;      // of the last change
  std::uint64_t last_rename = 0;  // Snapshot::last_rename() when it was rendered
  std::uint64_t described = 0;    // info.json: VersionRow::described
  IndexState drawn{};             // graph.svg: the state of the index before the drawing
};

// Names of the kin files, by KinFileNumber::file.
inline constexpr unsigned kKinFileCount = 3;
std::string_view kin_file_name(unsigned file);

// Any thread.
class LineageTexts {
 public:
  using Text = std::shared_ptr<const LineageText>;
  LineageTexts(Store& store, Versions& versions) : store_(store), versions_(versions) {}

  // Returns the present text of a kin_file, a diff, or a lineage_entry (graph.svg, info.json, owners.tsv).
  Result<Text> find(Ino ino);
  // Returns the present number of a kin file, which the latest publish, removal, undelete, rename or note of its kin
  // determines.
  Result<Ino> current(VersionId version, unsigned file);

 private:
  Result<bool> is_present(Ino ino, const LineageText& known) const;
  Result<LineageText> render(Ino ino);
  Result<LineageText> render_entry(Ino ino);
  Result<LineageText> render_kin(Ino ino);
  Result<LineageText> render_graph(VersionId version);
  Result<LineageText> render_diff_of(Ino ino);

  Result<std::string> render_info(const VersionRow& version);

  Store& store_;
  Versions& versions_;  // for the tables of data sets, and to resolve bare versions
  LruCache<LineageText> texts_{8U << 20U};
};

}  // namespace weft

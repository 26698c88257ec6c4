// The names by which lineage/ knows other versions: parents/, children/ and diff/ of a version have an entry for each
// live parent or child, named <model>@<number> with each '/' of the model as %2F. The entries of parents/ and children/
// are links into models/ and datasets/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/subtree.h"
#include "weft/result.h"
#include "weft/snapshot.h"
#include "weft/store_rows.h"

namespace weft {

enum class Kin : std::uint8_t { parent, child };

// One edge of the lineage, seen from one of its ends.
struct KinEntry {
  VersionRow other;       // the version at the other end
  VersionId child = 0;    // the edge's child
  unsigned position = 0;  // of the parent among the child's parents
};

// "org%2Fbert@2"
std::string kin_name(const VersionRow& version);
// The parents or children of a version by age, each once and removed ones too; `from` is as for other listings of a
// Snapshot.
Result<Page<VersionId>> kin_ids(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view from,
                                std::size_t rows_max);
// One of them; not_found where its record is lost.
Result<KinEntry> kin_entry(Snapshot& snapshot, const VersionRow& version, Kin kin, VersionId id);
Result<KinEntry> find_kin(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view name);  // not_found
// When an entry last appeared among a version's parents or children, or went.
Result<std::uint64_t> kin_changed_ns(Store& store, const VersionRow& version, Kin kin);

// The link that stands for an edge in parents/ or children/.
Attr kin_link_attr(const VersionRow& version, Kin kin, const KinEntry& edge);
// The same, from the link's number. Errc::not_found if its versions are gone.
struct KinLink {
  Attr attr;
  std::string target;
};
Result<KinLink> kin_link(Snapshot& snapshot, Ino ino);
// The two ends of an edge whose child and position the number holds.
struct KinEnds {
  VersionRow parent, child;
};
Result<KinEnds> kin_ends(Snapshot& snapshot, Ino ino);

}  // namespace weft

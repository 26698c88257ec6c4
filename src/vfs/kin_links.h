// The names of other versions in lineage/: parents/, children/ and diff/ of a version have an entry for each live
// parent or child, named <model>@<number> with each '/' of the model as %2F. The entries of parents/ and children/ are
// links into models/ and datasets/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vfs/subtree.h"
#include "weft/result.h"
#include "weft/store/snapshot.h"
#include "weft/store_rows.h"

namespace weft {

enum class Kin : std::uint8_t { parent, child };

// One edge of the lineage, seen from one of its ends.
struct KinEntry {
  VersionRow other;       // the version at the other end
  VersionId child = 0;    // the edge's child
  unsigned position = 0;  // index of the parent in the child's list of parents
};

// Returns a name such as "org%2Fbert@2".
std::string kin_name(const VersionRow& version);
// Returns the parents or children of a version by age, each once, removed ones too. `from` as in
// Snapshot::children().
Result<Page<VersionId>> kin_ids(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view from,
                                std::size_t rows_max);
// Returns the entry of version `id`. Errc::not_found if its record is lost.
Result<KinEntry> kin_entry(Snapshot& snapshot, const VersionRow& version, Kin kin, VersionId id);
Result<KinEntry> find_kin(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view name);  // not_found
// Returns the time at which an entry last appeared among a version's parents or children, or was removed.
Result<std::uint64_t> kin_changed_ns(Store& store, const VersionRow& version, Kin kin);

// Returns the attributes of the link that stands for an edge in parents/ or children/.
Attr kin_link_attr(const VersionRow& version, Kin kin, const KinEntry& edge);
// The link of an edge, found by its inode number. Errc::not_found if its versions are gone.
struct KinLink {
  Attr attr;
  std::string target;
};
Result<KinLink> kin_link(Snapshot& snapshot, Ino ino);
// The two ends of an edge, found by the child and the position in an inode number.
struct KinEnds {
  VersionRow parent, child;
};
Result<KinEnds> kin_ends(Snapshot& snapshot, Ino ino);

}  // namespace weft

// The inode numbers of the mount: the subtree that a number belongs to, and its meaning there. All ranges are here.
// fuse/state/node_id.h has bit 63. If bit 62 is set, the number is a KinFileNumber. Otherwise bits 57 to 61 hold an
// InoKind, and the bits below hold its payload:
//
//   stored                     the number itself: fixed (weft/programs/vfs.h), or given by the store's counter
//   layers, tensors, lineage, datasets, records, safetensors   the stored number of a directory or link that names
//                              versions. For a model, models/ has this number itself at the same place; for a data set,
//                              no tree has it
//   lineage_entry              a LineageEntry (8 bits) and a version
//   parent_link, child_link, diff   the position in the child's list of parents (8 bits) and the child version
//   versions_table             a model
//   hub_model, hub_refs, hub_snapshots, hub_main, hub_view_ref   the stored number of the model's directory
//   hub_tag                    the stored number of the tag's link
//   hub_number, hub_snapshot, hub_commit, hub_commit_link, hub_view_snapshot   a version
//   hub_dir, hub_link          the stored number of a published directory; of a published file
//   hub_view_dir, hub_view_link   the stored number of a directory of safetensors/; of a file there
//   draft                      weft/programs/vfs.h
//
// Stored numbers are at most limits::kStoredInoMax, ids of versions and models at most limits::kIdMax. The store
// refuses a publish above either.
#pragma once

#include <cstdint>

#include "base/limits.h"
#include "weft/programs/vfs.h"
#include "weft/store_rows.h"

namespace weft {

enum class InoKind : std::uint8_t {
  stored,
  layers,
  tensors,
  lineage,
  datasets,
  records,
  lineage_entry,
  parent_link,
  child_link,
  diff,
  versions_table,
  hub_model,
  hub_refs,
  hub_snapshots,
  hub_main,
  hub_tag,
  hub_number,
  hub_snapshot,
  hub_dir,
  hub_link,
  hub_commit,
  hub_commit_link,
  draft,  // entries of new/ (weft/programs/vfs.h)
  safetensors,
  hub_view_ref,
  hub_view_snapshot,
  hub_view_dir,
  hub_view_link,
  kin_file = 32,  // marked by bit 62, not by the kind's bits
};

// A version's directory in lineage/, and its entries with constant numbers.
enum class LineageEntry : std::uint8_t { dir, info, owners, parents, children, diff, graph, sums };

inline constexpr unsigned kInoKindShift = 57;
inline constexpr Ino kInoPayloadMask = (Ino{1} << kInoKindShift) - 1;
inline constexpr Ino kKinFileBit = Ino{1} << 62U;
inline constexpr unsigned kIdBits = 32;
static_assert(limits::kStoredInoMax == kInoPayloadMask);
static_assert(limits::kIdMax == (std::uint64_t{1} << kIdBits) - 1);
static_assert(limits::kParentsMax <= 256);

constexpr Ino ino_of(InoKind kind, std::uint64_t payload) {
  return Ino{static_cast<std::uint8_t>(kind)} << kInoKindShift | payload;
}
// The same from two parts; the lower one is the id of a version or model.
constexpr Ino ino_of(InoKind kind, std::uint64_t high, std::uint64_t id) {
  return ino_of(kind, high << kIdBits | id);
}

static_assert(kNewIno == ino_of(InoKind::draft, 0) && kDraftNumberBits == kInoKindShift);

constexpr InoKind kind_of(Ino ino) {
  if ((ino & kKinFileBit) != 0) return InoKind::kin_file;
  return static_cast<InoKind>(ino >> kInoKindShift & 31U);  // no enumerator if no mount assigns the number
}
constexpr std::uint64_t payload_of(Ino ino) {
  return ino & kInoPayloadMask;
}
constexpr std::uint64_t high_of(Ino ino) {
  return payload_of(ino) >> kIdBits;
}
constexpr std::uint64_t id_of(Ino ino) {
  return ino & limits::kIdMax;
}

// Returns the largest high part of a number with an id.
constexpr std::uint64_t high_max(InoKind kind) {
  switch (kind) {
    case InoKind::lineage_entry:
      return static_cast<std::uint64_t>(LineageEntry::sums);
    case InoKind::parent_link:
    case InoKind::child_link:
    case InoKind::diff:
      return limits::kParentsMax - 1;
    default:
      return 0;
  }
}
constexpr bool has_id(InoKind kind) {
  return high_max(kind) != 0 || kind == InoKind::versions_table || kind == InoKind::hub_number ||
         kind == InoKind::hub_snapshot || kind == InoKind::hub_commit || kind == InoKind::hub_commit_link ||
         kind == InoKind::hub_view_snapshot;
}
// False for a number that no mount assigns. Each part of the other numbers counts, so no two numbers mean the same.
constexpr bool is_possible(Ino ino) {
  return !has_id(kind_of(ino)) || high_of(ino) <= high_max(kind_of(ino));
}

// A kin file of lineage/, which changes when kin are published or removed. The changed file has another number, so the
// bytes of one number are constant.
struct KinFileNumber {
  unsigned file = 0;        // 2 bits
  VersionId version = 0;    // 32 bits
  std::uint64_t clock = 0;  // low kKinClockBits of the clock at the last change that the file shows
};
// A number recurs after 2^28 publishes and removals. A file that stays open for so long may change then.
inline constexpr unsigned kKinClockBits = 28;
inline constexpr std::uint64_t kKinClockMask = (std::uint64_t{1} << kKinClockBits) - 1;

constexpr Ino ino_of(const KinFileNumber& number) {
  return kKinFileBit | Ino{number.file & 3U} << (kIdBits + kKinClockBits) | number.version << kKinClockBits |
         (number.clock & kKinClockMask);
}
// Returns the whole clock of a number: the latest tick up to `now` that has the number's low bits.
constexpr std::uint64_t clock_of(const KinFileNumber& number, std::uint64_t now) {
  const std::uint64_t age = (now - number.clock) & kKinClockMask;
  return now < age ? 0 : now - age;
}

constexpr KinFileNumber kin_file_of(Ino ino) {
  return {static_cast<unsigned>(ino >> (kIdBits + kKinClockBits) & 3U), ino >> kKinClockBits & limits::kIdMax,
          ino & kKinClockMask};
}

}  // namespace weft

// The inode numbers of the mount, by the subtree that they belong to. The index has the numbers from kFirstStoredIno up
// to the lowest bit below, and its row says what each is. All other numbers say by themselves what they are.
#pragma once

#include "weft/vfs.h"

namespace weft {

// A link in lineage/parents or lineage/children: src/vfs/kin_links.cc says what follows this bit.
inline constexpr Ino kKinLinkBit = Ino{1} << 62U;
// A generated file in lineage/, or lineage/diff. Bit 60: of diff/, with 30 bits of version and 30 of the parent, 0 for
// the directory. Otherwise 3 bits of file, 27 of version, 30 of clock.
inline constexpr Ino kKinFileBit = Ino{1} << 61U;

constexpr bool is_kin_link(Ino ino) {
  return (ino & kKinLinkBit) != 0;
}
constexpr bool is_kin_file(Ino ino) {
  return (ino & (kKinLinkBit | kKinFileBit)) == kKinFileBit;
}

}  // namespace weft

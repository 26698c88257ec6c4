// fsck and scrub of packs and assembled files: what is stored is read and compared with what names it.
#pragma once

#include <cstdint>
#include <functional>

#include "packs/blob_index.h"
#include "weft/fsck.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class AssembledPacks;
class Packs;

// How verify_packs() reads, and where it begins and ends.
struct VerifyPace {
  BlobPlace from;  // blobs before it are left out
  // Called after each piece that was read. It may sleep.
  std::function<void(std::uint64_t bytes)> have_read;
  // Asked before each blob. True: it ends there, and `from` is that blob's place.
  std::function<bool()> is_over;
  bool over = false;
};

// Reads each pack's .toc (and, with `data`, its blobs) and compares them with their ids and the index.
// With a pace, one thread reads all blobs, in the order of their packs and places, and leaves the page cache as it was.
Status verify_packs(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report,
                    VerifyPace* pace = nullptr);
// A damaged assembled file may have the only whole copy of what is damaged in a pack. It is deleted only if no pack is
// damaged, or after a rebuild has taken what it needs.
enum class DamagedFiles : std::uint8_t { keep, remove };
inline DamagedFiles damaged_files_after(bool clean) {
  return clean ? DamagedFiles::remove : DamagedFiles::keep;
}
// The same of assembled files.
Status verify_assembled(AssembledPacks& assembled, bool data, DamagedFiles damaged, Progress& progress,
                        FsckReport& report, VerifyPace* pace = nullptr);

}  // namespace weft

// fsck and scrub of packs and assembled files: compares the stored bytes with their digests and with the index.
#pragma once

#include <cstdint>
#include <functional>

#include "packs/blob_index.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/fsck.h"
#include "weft/store_rows.h"

namespace weft {

class AssembledPacks;
class Packs;

// How fast verify_packs() reads, where it starts, and when it stops.
struct VerifyPace {
  BlobPlace from;  // skips the blobs before this place
  // Called after each piece that was read. It may sleep to limit the rate.
  std::function<void(std::uint64_t bytes)> have_read;
  // Called before each blob. If true, the run stops and sets `from` to that blob's place.
  std::function<bool()> is_over;
  bool over = false;
};

// Reads each pack's .toc (and, with `data`, its blobs) and compares them with their ids and the index.
// With a pace, one thread reads all blobs in the order of pack ids and offsets, and leaves the page cache as it was.
Status verify_packs(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report,
                    VerifyPace* pace = nullptr);
// A damaged assembled file may hold the only good copy of a blob whose pack is damaged. So it is deleted only if no
// pack is damaged, or after a rebuild has copied that blob.
enum class DamagedFiles : std::uint8_t { keep, remove };
inline DamagedFiles damaged_files_after(bool clean) {
  return clean ? DamagedFiles::remove : DamagedFiles::keep;
}
// The same for assembled files.
Status verify_assembled(AssembledPacks& assembled, bool data, DamagedFiles damaged, Progress& progress,
                        FsckReport& report, VerifyPace* pace = nullptr);

}  // namespace weft

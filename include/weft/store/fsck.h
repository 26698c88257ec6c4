// Options and reports of fsck and of rebuilds (store/checking/check.cc, repair/rebuild.h), and the repair of blobs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct FsckOptions {
  bool rebuild = false;      // rebuild the index from packs, manifests and journal
  bool data = true;          // read and hash every blob
  bool accept_loss = false;  // with rebuild: as RebuildOptions
};
struct RebuildOptions {
  bool accept_loss = false;  // continue without data that is lost
  Patience patience = {};
  bool data = true;  // read all blobs that versions need, and look for other copies of damaged ones
};
// A blob that versions may need, and whose stored bytes are damaged or missing.
struct DamagedBlob {
  ContentId id;
  BlobPlace place;   // as the index names it
  std::string what;  // the problem, one line
};
struct FsckReport {
  std::uint64_t versions = 0, blobs = 0, packs = 0, bytes_read = 0;
  std::vector<std::string> problems;  // one line each
  std::vector<DamagedBlob> damaged;   // each is also listed in `problems`
  std::vector<std::string> repaired;  // damage that a rebuild has repaired
  std::vector<std::string> lost;      // losses that were accepted
  bool rebuilt = false;
  bool refused = false;  // a rebuild would have lost the data in `problems`, so it changed nothing
  bool clean() const { return problems.empty(); }
};

// Stores blobs again whose stored bytes are damaged or missing. Destroyed without commit(), it leaves nothing behind.
// One thread.
class BlobRepair {
 public:
  virtual ~BlobRepair() = default;
  // Reads the blob at `offset` of `fd` and writes it to a new pack. Errc::corrupt: these bytes are not the blob; the
  // caller can try another source. `where` starts messages.
  virtual Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) = 0;
  // Makes the new pack durable and changes the index to it. gc frees the damaged bytes later. Open descriptors and
  // mappings of the damaged pack keep the damaged bytes.
  virtual Status commit() = 0;
};

}  // namespace weft

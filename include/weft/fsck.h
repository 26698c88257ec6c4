// Options and reports of fsck and of rebuilds (store/check.cc, repair/rebuild.h), and the repair of blobs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct FsckOptions {
  bool rebuild = false;      // make the index anew from packs, manifests and journal
  bool data = true;          // read and hash every blob
  bool accept_loss = false;  // with rebuild: as RebuildOptions
};
struct RebuildOptions {
  bool accept_loss = false;  // go on without what is lost
  Patience patience = {};
  bool data = true;  // read all blobs that versions need: damaged ones are looked for in other places
};
// A blob that versions may need and whose stored bytes are damaged or missing.
struct DamagedBlob {
  ContentId id;
  BlobPlace place;   // as the index names it
  std::string what;  // one line
};
struct FsckReport {
  std::uint64_t versions = 0, blobs = 0, packs = 0, bytes_read = 0;
  std::vector<std::string> problems;  // one line each
  std::vector<DamagedBlob> damaged;   // their lines are among the problems
  std::vector<std::string> repaired;  // by a rebuild: what was damaged and is whole again
  std::vector<std::string> lost;      // for good, as accepted
  bool rebuilt = false;
  bool refused = false;  // a rebuild that would have to give up what `problems` name: nothing was changed
  bool clean() const { return problems.empty(); }
};

// Stores blobs anew whose stored bytes are damaged or missing. Destroyed without commit(), it leaves nothing behind.
// One thread.
class BlobRepair {
 public:
  virtual ~BlobRepair() = default;
  // Reads the blob at `offset` of `fd` and writes it to a new pack. Errc::corrupt: these bytes are not the blob;
  // another source can be tried. `where` starts messages.
  virtual Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) = 0;
  // Makes the new pack durable and lets the index name it. gc frees the damaged bytes later. A descriptor or mapping of
  // the damaged pack keeps the damaged bytes.
  virtual Status commit() = 0;
};

}  // namespace weft

// An extent that is larger than a window, passed through the windows slice by slice. Its bytes are read from the source
// once: they are hashed, and either compared with stored bytes or written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "packs/pack_writer.h"
#include "packs/source.h"
#include "packs/window.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// One thread.
class WindowRing {
 public:
  WindowRing(ThreadPool& hashers, ThreadPool& writer, std::size_t count, std::size_t capacity);
  ImportWindow& next() { return *windows_[next_]; }  // what take() will give
  Result<ImportWindow*> take();                      // when the jobs on its former content are done
  Status wait_hashing();                             // of all windows
  Status wait_writing();
  bool writing_idle();  // what was to be written is
  Status shed();        // waits for all jobs, and gives back the windows' memory until it is used again
  Status end();         // waits for writing, and gives back the windows' memory: there is no take() after it

 private:
  std::vector<std::unique_ptr<ImportWindow>> windows_;
  std::size_t next_ = 0;
};

// Stored bytes of a blob.
struct Twin {
  int fd = -1;
  std::uint64_t offset = 0;
};
// Bytes that cannot be read equal none.
bool equals_twin(std::span<const std::byte> bytes, const Twin& twin);

// Where an extent goes in a pack.
struct PackSpot {
  PackWriter* pack = nullptr;
  std::uint64_t offset = 0;
  bool is_there = false;  // the pack has the bytes already: it is a clone of the source
};
// Writes `length` bytes of the twin there. No writes to that pack are on their way.
Status copy_twin(const Twin& from, std::uint64_t length, const PackSpot& to);

// Content that may be that of an extent.
struct Candidate {
  ContentId id;
  Twin twin;
};
struct StreamPlan {
  Range range;
  // Content with this length and hint (tables.h). Called once, after the extent's first MiB was read.
  std::function<Result<std::optional<Candidate>>(std::uint64_t hint)> find;
  // Where the extent is to be written. Called once, as soon as it is known not to be the candidate's.
  std::function<Result<PackSpot>()> spot;
};
struct Streamed {
  ContentId id;
  std::vector<Digest> chunks;
  std::uint64_t hint = 0;
  std::uint64_t head = 0;  // Extent::head
  std::optional<Candidate> candidate;
  // Where it was written; the writes may go on. None: the candidate's bytes and root are the extent's.
  std::optional<PackSpot> spot;
};
// Passes the extent. If its bytes turn out to differ from the candidate's, those before the difference are copied from
// the stored bytes, which were equal, and the others are written from the windows.
Result<Streamed> stream(WindowRing& ring, Source& source, const StreamPlan& plan);

}  // namespace weft

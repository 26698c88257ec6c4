// Streams an extent that is larger than a window through the windows, slice by slice. Each byte is read from the source
// once, hashed, and either compared with stored bytes or written.
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
  ImportWindow& next() { return *windows_[next_]; }  // the window that take() returns next
  Result<ImportWindow*> take();                      // waits for all jobs on the window's old content
  Status wait_hashing();                             // for all windows
  Status wait_writing();
  bool writing_idle();  // true if no writes are pending
  Status shed();        // waits for all jobs, and frees the windows' memory until their next use
  Status end();         // waits for writes, and frees the windows; take() is not allowed after it

 private:
  std::vector<std::unique_ptr<ImportWindow>> windows_;
  std::size_t next_ = 0;
};

// Stored bytes of a blob.
struct Twin {
  int fd = -1;
  std::uint64_t offset = 0;
};
// False if the bytes cannot be read.
bool equals_twin(std::span<const std::byte> bytes, const Twin& twin);

// The place of an extent in a pack.
struct PackSpot {
  PackWriter* pack = nullptr;
  std::uint64_t offset = 0;
  bool is_there = false;  // the pack is a clone of the source and has the bytes already
};
// Copies `length` bytes of the twin there. The pack must have no pending writes.
Status copy_twin(const Twin& from, std::uint64_t length, const PackSpot& to);

// Stored content that may equal an extent.
struct Candidate {
  ContentId id;
  Twin twin;
};
struct StreamPlan {
  Range range;
  // Returns content with this length and hint (index/blobs.h). Called once, after the first MiB of the extent was read.
  std::function<Result<std::optional<Candidate>>(std::uint64_t hint)> find;
  // Returns the place to write the extent to. Called once, as soon as the extent is known to differ from the candidate.
  std::function<Result<PackSpot>()> spot;
};
struct Streamed {
  ContentId id;
  std::vector<Digest> chunks;
  std::uint64_t hint = 0;
  std::uint64_t head = 0;  // Extent::head
  std::optional<Candidate> candidate;
  // The place that the extent is written to; writes may be pending. None: the extent equals the candidate.
  std::optional<PackSpot> spot;
};
// Streams the extent. If it turns out to differ from the candidate, the bytes before the difference are copied from the
// stored bytes, and the others are written from the windows.
Result<Streamed> stream(WindowRing& ring, Source& source, const StreamPlan& plan);

}  // namespace weft

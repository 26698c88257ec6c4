// The file that an import reads: which pack gets its bytes. A file with few known bytes becomes a pack of its own,
// unchanged: the file itself, a clone of it, or a copy. The new content of any other file goes into the mixed pack.
//
// A pack has to have the bytes that the import hashed. A copy is written from the buffers that were hashed, and a clone
// is read itself. A file that becomes the pack as it is has had a lease since before the first read: no process could
// write to it. A file that arrives (weft/arrival.h) has its receiver as a writer until its last byte, so that no lease
// can say this for the time before. Four facts replace that lease:
//  · Only the owner of the store gives files away, who can write to its packs as well.
//  · The receiver is a program of weft. It writes a byte before it reports it and never again, to a file that it made
//    in a directory for this user alone, under a lock that keeps other receivers away.
//  · PackWriter::hold() takes the lease after the last byte. It fails if any descriptor or mapping can still write.
//  · The import compares the times of the file with those from before its last read, so that a write in between is an
//    error. From hold() on the lease shows a writer, as for other files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "packs/fresh_blobs.h"
#include "packs/source.h"
#include "packs/stream.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// Smaller files get no pack of their own: gc would merge such packs at once.
inline constexpr std::uint64_t kWholeFileMin = 1U << 20U;

// One thread. For one file after another: begin(), then the calls for each range, then finish(). After an error only
// destruction is allowed.
class ImportedFile {
 public:
  // Both outlive this. The new blobs of a pack are listed in `fresh`.
  ImportedFile(FreshBlobs& fresh, WindowRing& ring) : fresh_(fresh), ring_(ring) {}

  // The ranges cover the file, and stay valid until finish(). After begin() the source may read from a clone.
  Status begin(Source& source, std::span<const Range> ranges, Take take);
  std::span<const Range> ranges() const { return file_.ranges; }

  void identify(std::size_t range, const ContentId& id, std::uint64_t head);  // sets the extent of the range
  // Returns the place for the bytes of a new range.
  Result<PackSpot> next_spot(std::size_t range);
  // Records a range with known content. `stored`: the stored copy; none: the content is among the fresh blobs.
  void note_known(std::size_t range, std::optional<Twin> stored);
  // Drops bytes that were written at next_spot() although their content is known.
  void drop_written(std::size_t range, const PackSpot& spot);

  // Completes the packs after the last range. Writes may be pending in the windows.
  Status finish(Source& source);
  std::vector<Extent> take_extents() { return std::move(file_.extents); }  // one per range
  void clear() { file_ = File{}; }                                         // frees the memory

  std::uint64_t shared_bytes() const { return shared_bytes_; }  // in ranges with known content, of all files

 private:
  struct Gap {
    std::size_t range = 0;
    std::optional<Twin> stored;
  };
  struct File {
    std::span<const Range> ranges;
    std::vector<Extent> extents;
    bool whole = false;   // so far the file becomes a separate pack
    bool cloned = false;  // `own` has all its bytes already
    bool taken = false;   // `own` is the file itself, whose bytes must not change
    bool loose = false;   // `own` has bytes that it does not list
    PackWriter* own = nullptr;
    std::uint64_t known_max = 0;  // with more known bytes than this, `whole` becomes false
    std::uint64_t known = 0;      // bytes
    std::vector<Gap> gaps;        // ranges that `own` lacks
  };

  Status try_take(const Source& source, Take take);
  Status leave_taken();
  Status try_clone(Source& source);
  void count_known(std::size_t range);
  Status finish_packs();
  Status fill_gaps();

  FreshBlobs& fresh_;
  WindowRing& ring_;
  File file_;
  std::optional<std::uint64_t> no_clones_from_;  // a device without reflinks to the store
  std::uint64_t shared_bytes_ = 0;
};

}  // namespace weft

// The pack side of one import: reads sources, finds what is known, writes what is new below tmp/.
//
// The calling thread reads the source, once, into windows; a pool computes the SHA-256 trees and compares known content
// with the stored bytes, and a thread writes. So every byte is hashed in the buffer that it is written from, and a
// source that changes cannot slip in.
//  · Extents that fit a window are hashed and looked up by their root. Known ones are compared with the stored bytes.
//  · A larger one is streamed. If a hint finds content that may be the same, its bytes are compared as they are read,
//    else written. If the root of a written one turns out to be known, the stored bytes are read and hashed, and what
//    was written is dropped.
// Known content whose stored bytes differ from the source's, or cannot be read, is damaged: it is stored anew, and the
// commit gives the blob its new place.
// A file of which little is known is stored as it is, in a pack of its own; all else goes into one mixed pack.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "os/safe_path.h"
#include "packs/fresh_blobs.h"
#include "packs/known_blobs.h"
#include "packs/packs.h"
#include "packs/source.h"
#include "packs/stream.h"
#include "packs/temp_area.h"
#include "packs/window.h"
#include "weft/publish.h"

namespace weft {

// Smaller files are not worth a pack of their own; gc would merge such packs at once.
inline constexpr std::uint64_t kWholeFileMin = 1U << 20U;

struct ImportTuning {
  std::size_t window_bytes = 16U << 20U;  // a multiple of kDigestChunk
  std::size_t windows = 4;
  unsigned threads = 0;          // 0: one for each CPU
  Source::Hook after_read = {};  // for tests
  Patience patience = {};        // with a gc that is at a pack
  bool in_memory = false;        // PackWriter::keep_in_memory(); not where the kernel does not tell its boot
};

// A range of a file that is known, and where its bytes are; none: among the fresh blobs.
struct Gap {
  std::size_t range = 0;
  std::optional<Twin> stored;
};

// What add() knows of the file that it is at.
struct FileState {
  std::span<const Range> ranges;
  std::vector<Extent> extents;  // by range
  bool whole = false;           // so far stored as it is
  bool cloned = false;          // `own` has all its bytes already
  bool taken = false;           // `own` is the file itself: its bytes stay as they are
  bool loose = false;           // `own` has bytes that it does not list
  PackWriter* own = nullptr;
  std::uint64_t known_max = 0;  // more known bytes than this: not whole
  std::uint64_t known = 0;      // bytes
  std::vector<Gap> gaps;        // that `own` lacks
};

// By extent of a window: its number among the fresh blobs if it is new.
using Claims = std::vector<std::optional<std::size_t>>;

// A window of extents on its way: its bytes are hashed, then looked up and compared with the stored ones.
struct FilledWindow {
  ImportWindow* window = nullptr;
  bool looked_up = false;
  std::vector<StoredBlob> stored;  // by extent, once looked up
};

// One thread calls it; it uses others. What was not placed when it is destroyed is removed.
class Importer {
 public:
  static Result<std::unique_ptr<Importer>> begin(const SafePath& store_path, IndexAccess& index, ImportTuning tuning);

  Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Progress& progress,
                                  Take take = Take::copy, const SeenBytes& seen = {});
  // Makes the packs durable, still below tmp/: begins, forgets what only further files need, and waits. After a failure
  // of these or the next only destruction is left.
  Status begin_seal();
  Status seal();
  // Moves them to packs/. The caller holds the writer lock from here until the index has new_blobs(), or has what else
  // keeps gc from them.
  Status place();
  Status finish() {
    WEFT_CHECK(seal());
    return place();
  }
  std::span<const NewBlob> new_blobs() const { return fresh_.all(); }
  bool in_memory() const { return in_memory_; }
  std::uint64_t shared_bytes() const { return shared_bytes_; }  // logical bytes given to add() that were known
  // Opens the packs that this content is in, for as long as this lives.
  Status hold(std::span<const ContentId> ids);
  // After seal(), under the writer lock: content that this import shares and that gc has freed since it was looked up.
  Result<std::vector<ContentId>> lost() { return known_.lost(); }
  // Without the lock: stores it anew, from packs that this import has open, and durably. It is among new_blobs() then.
  Status store_again(std::span<const ContentId> ids);
  bool holds(PackId pack) const { return known_.holds(pack); }

 private:
  Importer(const SafePath& store_path, IndexAccess& index, ImportTuning tuning, std::unique_ptr<TempArea> temp);

  Result<std::vector<Extent>> add_file(Source& source, std::span<const Range> ranges, Take take);
  Status start_file(Source& source, std::span<const Range> ranges, Take take);
  Status try_take(const Source& source, Take take);
  Status leave_taken();
  Status try_clone(Source& source);
  Status finish_file();
  Status fill_gaps();
  void note_known(std::size_t range);
  Status copy_again(const ContentId& id, PackWriter& pack);
  void note_gap(std::size_t range, std::optional<Twin> stored);

  // Extents that fit a window (import_batch.cc).
  Result<std::size_t> add_batch(Source& source, std::size_t first);
  Status look_up_hashed();
  Status resolve_ready();
  Status resolve_oldest();
  Status resolve_all();
  Status look_up(FilledWindow& filled);
  void start_comparing(FilledWindow& filled);
  Claims claim_new(const FilledWindow& filled);
  Status write_new(ImportWindow& window, const Claims& claims);

  // Larger ones (import_large.cc).
  Status add_large(Source& source, std::size_t range);
  Result<std::optional<Candidate>> find_candidate(std::uint64_t length, std::uint64_t hint);
  enum class Stored : std::uint8_t { unknown, intact, damaged };
  Result<Stored> stored_state(const Streamed& seen);
  bool is_intact(const OpenPlace& place, const Streamed& seen);
  void drop_written(std::size_t range, const PackSpot& spot);

  Result<PackSpot> next_spot(std::size_t range);

  Packs packs_;
  ImportTuning tuning_;
  std::unique_ptr<TempArea> temp_;
  const bool in_memory_;
  KnownBlobs known_;
  OpenPlace candidate_;  // the stored blob that find_candidate() answered with last
  FreshBlobs fresh_;
  std::deque<FilledWindow> unresolved_;  // oldest first. Before the ring, which waits for the jobs that use it
  ThreadPool pool_;
  ThreadPool writer_{1};  // a file takes one write at a time: more threads would only wait for one another
  WindowRing ring_;
  FileState file_;
  std::optional<std::uint64_t> no_clones_from_;  // a device
  bool spent_ = false;
  bool sealing_ = false;
  std::uint64_t shared_bytes_ = 0;
};

}  // namespace weft

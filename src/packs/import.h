// The pack side of one import: reads sources, finds known content, and writes new content below tmp/.
//
// The calling thread reads each source once, into windows. A pool computes the SHA-256 trees and compares known content
// with the stored bytes. One more thread writes. So every byte is hashed in the buffer that it is written from, and a
// source that changes meanwhile cannot add unhashed bytes.
//  · Extents that fit a window are hashed and looked up by their root. Known ones are compared with the stored bytes.
//  · A larger extent is streamed. If a hint finds a candidate, the bytes are compared with it as they are read.
//    Otherwise they are written. If the root of a written extent is known after all, the stored bytes are read and
//    hashed, and the written copy is dropped.
// If the stored bytes of known content cannot be read, or differ from the source's, they are damaged. The import then
// stores the content again, and the commit gives the blob its new place. A file with few known bytes becomes a pack of
// its own, unchanged. Everything else goes into one mixed pack.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
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
#include "weft/store/publish.h"

namespace weft {

// Smaller files get no pack of their own: gc would merge such packs at once.
inline constexpr std::uint64_t kWholeFileMin = 1U << 20U;

struct ImportTuning {
  std::size_t window_bytes = 16U << 20U;  // a multiple of kDigestChunk
  std::size_t windows = 4;
  unsigned threads = 0;          // 0: one per CPU
  Source::Hook after_read = {};  // for tests
  Patience patience = {};        // not read by Importer
  bool in_memory = false;        // PackWriter::keep_in_memory(); ignored if the kernel does not tell the boot id
};

// A range of the file with known content. `stored`: the stored copy; none: the content is among the fresh blobs.
struct Gap {
  std::size_t range = 0;
  std::optional<Twin> stored;
};

// The state of add() for the current file.
struct FileState {
  std::span<const Range> ranges;
  std::vector<Extent> extents;  // one per range
  bool whole = false;           // so far the file becomes a separate pack
  bool cloned = false;          // `own` has all its bytes already
  bool taken = false;           // `own` is the file itself, whose bytes must not change
  bool loose = false;           // `own` has bytes that it does not list
  PackWriter* own = nullptr;
  std::uint64_t known_max = 0;  // with more known bytes than this, `whole` becomes false
  std::uint64_t known = 0;      // bytes
  std::vector<Gap> gaps;        // ranges that `own` lacks
};

// For each extent of a window its number among the fresh blobs; none if it is known.
using Claims = std::vector<std::optional<std::size_t>>;

// A filled window. Its bytes are hashed, then looked up, then compared with the stored ones.
struct FilledWindow {
  ImportWindow* window = nullptr;
  bool looked_up = false;
  std::vector<StoredBlob> stored;  // by extent; empty before the lookup
};

// Called by one thread; it uses others. The destructor removes packs that were not placed.
class Importer {
 public:
  static Result<std::unique_ptr<Importer>> begin(const SafePath& store_path, IndexAccess& index, ImportTuning tuning);

  Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Progress& progress,
                                  Take take = Take::copy, const SeenBytes& seen = {});
  // Makes the packs durable, still below tmp/. begin_seal() starts that and frees the memory that only add() needs;
  // seal() waits. After an error of these or of place(), only destruction is allowed.
  Status begin_seal();
  Status seal();
  // Moves the packs to packs/. The caller holds the writer lock, and keeps it until the index has new_blobs() or
  // something else protects the packs from gc.
  Status place();
  Status finish() {
    WEFT_CHECK(seal());
    return place();
  }
  std::span<const NewBlob> new_blobs() const { return fresh_.all(); }
  bool in_memory() const { return in_memory_; }
  std::uint64_t shared_bytes() const { return shared_bytes_; }  // logical bytes given to add() whose content was known
  // Opens the packs that hold this content. They stay open as long as this object lives.
  Status hold(std::span<const ContentId> ids);
  // Call after seal(), under the writer lock: returns shared content that gc has freed since it was looked up.
  Result<std::vector<ContentId>> lost() { return known_.lost(); }
  // Call without the writer lock: copies this content from packs that the import has open into a new, durable pack. The
  // copies are then among new_blobs().
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

  // import_batch.cc: extents that fit a window.
  Result<std::size_t> add_batch(Source& source, std::size_t first);
  Status look_up_hashed();
  Status resolve_ready();
  Status resolve_oldest();
  Status resolve_all();
  Status look_up(FilledWindow& filled);
  void start_comparing(FilledWindow& filled);
  Claims claim_new(const FilledWindow& filled);
  Status write_new(ImportWindow& window, const Claims& claims);

  // import_large.cc: larger extents.
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
  OpenPlace candidate_;  // the stored blob that find_candidate() returned last
  FreshBlobs fresh_;
  std::deque<FilledWindow> unresolved_;  // oldest first. Declared before ring_, whose destructor waits for jobs on them
  ThreadPool pool_;
  ThreadPool writer_{1};  // one thread: a file takes one write at a time
  WindowRing ring_;
  FileState file_;
  std::optional<std::uint64_t> no_clones_from_;  // a device without reflinks to the store
  bool spent_ = false;
  bool sealing_ = false;
  std::uint64_t shared_bytes_ = 0;
};

}  // namespace weft

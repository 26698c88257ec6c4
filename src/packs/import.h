// The pack side of one import: reads sources, finds known content, and writes new content below tmp/.
//
// The calling thread reads each source once, into windows. A pool computes the SHA-256 trees and the plain SHA-256 of
// the files (plain_digests.h), and compares known content with the stored bytes. One more thread writes. So every byte
// is hashed in the buffer that it is written from, and a source that changes meanwhile cannot add unhashed bytes.
//  · Extents that fit a window are hashed and looked up by their root. Known ones are compared with the stored bytes.
//  · A larger extent is streamed. If a hint finds a candidate, the bytes are compared with it as they are read.
//    Otherwise they are written. If the root of a written extent is known after all, the stored bytes are read and
//    hashed, and the written copy is dropped.
// If the stored bytes of known content cannot be read, or differ from the source's, they are damaged. The import then
// stores the content again, and the commit gives the blob its new place. imported_file.h says which pack gets it.
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
#include "packs/imported_file.h"
#include "packs/known_blobs.h"
#include "packs/packs.h"
#include "packs/plain_digests.h"
#include "packs/source.h"
#include "packs/stream.h"
#include "packs/temp_area.h"
#include "packs/window.h"
#include "weft/store/publish.h"

namespace weft {

struct ImportTuning {
  std::size_t window_bytes = 16U << 20U;  // a multiple of kDigestChunk
  std::size_t windows = 4;
  unsigned threads = 0;          // 0: one per CPU
  Source::Hook after_read = {};  // for tests
  Patience patience = {};        // not read by Importer
  bool in_memory = false;        // PackWriter::keep_in_memory(); ignored if the kernel does not tell the boot id
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
                                  Take take = Take::copy, const ByteUses& uses = {});
  void finish_sums() { plain_.finish(); }  // waits until the sums of all files that were added are complete
  // As Import::sums_of(). The pool reads several files at a time.
  Result<std::vector<std::optional<Digest>>> sums_of(std::span<const std::span<const Extent>> files,
                                                     Progress& progress);
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
  // The logical bytes given to add() whose content was known.
  std::uint64_t shared_bytes() const { return file_.shared_bytes(); }
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
  Status copy_again(const ContentId& id, PackWriter& pack);
  Result<std::vector<Twin>> stored_parts(std::span<const Extent> extents);

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

  // Larger extents:
  Status add_large(Source& source, std::size_t range);
  Result<std::optional<Candidate>> find_candidate(std::uint64_t length, std::uint64_t hint);
  enum class Stored : std::uint8_t { unknown, intact, damaged };
  Result<Stored> stored_state(const Streamed& seen);
  bool is_intact(const OpenPlace& place, const Streamed& seen);

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
  PlainDigests plain_;    // declared before ring_, whose windows wait until their bytes are hashed
  WindowRing ring_;
  ImportedFile file_;
  bool spent_ = false;
  bool sealing_ = false;
};

}  // namespace weft

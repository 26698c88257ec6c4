// The pack side of one import; packs.h says what it promises, this how it goes about it.
//
// The calling thread reads the source into windows and computes XXH3-128; a pool computes the SHA-256 trees and writes.
// So every byte is hashed in the buffer it is written from, and a source that changes cannot slip in.
//  · Extents that fit a window are read once: hashed, looked up, written if new.
//  · A larger one is streamed. If no blob has its length it must be new and is written on the way. Else it is read to
//    learn whether it is known, and a second time, hashed anew, to write it.
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
#include "store/fresh_blobs.h"
#include "store/known_blobs.h"
#include "store/packs.h"
#include "store/source.h"
#include "store/stream.h"
#include "store/temp_area.h"
#include "store/window.h"

namespace weft {

// Smaller files are not worth a pack of their own; gc would merge such packs at once.
inline constexpr std::uint64_t kWholeFileMin = 1U << 20U;

struct ImportTuning {
  std::size_t window_bytes = 16U << 20U;  // a multiple of kDigestChunk
  std::size_t windows = 4;
  unsigned threads = 0;     // 0: one for each CPU
  Source::Hook after_read;  // for tests
  Patience patience = {};   // with a gc that is at a pack
};

// What add() knows of the file that it is at.
struct FileState {
  std::span<const Range> ranges;
  std::vector<ContentId> ids;  // by range
  bool whole = false;          // so far stored as it is
  bool cloned = false;         // `own` has all its bytes already
  PackWriter* own = nullptr;
  std::uint64_t known_max = 0;    // more known bytes than this: not whole
  std::uint64_t known = 0;        // bytes
  std::vector<std::size_t> gaps;  // ranges that are known and not in `own`
};

// What is known of an extent's content.
struct StoredMatch {
  std::optional<ContentId> equal;  // it is there already
  std::vector<Digest> taken;       // roots of other content with its length and XXH3-128
};
// Stored content with the length and XXH3-128 of a large extent.
struct LargeTwin {
  ContentId id;
  Twin twin;
};
// By extent of a window: its number among the fresh blobs if it is new.
using Claims = std::vector<std::optional<std::size_t>>;

// In a store without digests the root only tells apart what has one XXH3-128: zeros for the first, then a count.
Digest unused_root(std::span<const Digest> taken);

class Importer final : public PackImport {
 public:
  static Result<std::unique_ptr<Importer>> begin(const std::string& store_path, DigestMode digest, IndexAccess& index,
                                                 ImportTuning tuning);
  ~Importer() override = default;

  Result<std::vector<ContentId>> add(int fd, std::string_view where, std::span<const Range> ranges,
                                     Progress& progress) override;
  Status seal() override;
  Status place() override;
  std::span<const NewBlob> new_blobs() const override { return fresh_.all(); }
  std::uint64_t shared_bytes() const override { return shared_bytes_; }
  Status hold(std::span<const ContentId> ids) override;
  bool holds(PackId pack) const override { return known_.holds(pack); }

 private:
  Importer(const std::string& store_path, DigestMode digest, IndexAccess& index, ImportTuning tuning,
           std::unique_ptr<TempArea> temp);

  Result<std::vector<ContentId>> add_file(Source& source, std::span<const Range> ranges);
  Status start_file(Source& source, std::span<const Range> ranges);
  Status try_clone(Source& source);
  Status finish_file(Source& source);
  Status fill_gaps(Source& source);
  void note_known(std::size_t range);

  // Extents that fit a window (pack_import_batch.cc).
  Result<std::size_t> add_batch(Source& source, std::size_t first);
  Status resolve_oldest();
  Status resolve_all();
  Result<std::vector<StoredMatch>> match_stored(ImportWindow& window);
  Status compare_stored(ImportWindow& window, std::span<const std::vector<Candidate>> candidates,
                        std::vector<StoredMatch>& matches);
  Status match_fresh(ImportWindow& window, std::size_t first_fresh, const WindowExtent& extent, StoredMatch& match);
  Result<Claims> claim_new(ImportWindow& window);
  Status write_new(ImportWindow& window, const Claims& claims);

  // Larger ones (pack_import_large.cc).
  Status add_large(Source& source, std::size_t range);
  Result<StoredMatch> match_large(Source& source, const Range& range, Streamed& seen);
  Result<std::vector<LargeTwin>> large_twins(const ContentId& id);
  Status write_large(Source& source, std::size_t range, const Hash128* expected, const StoredMatch& match);

  struct Spot {
    PackWriter* pack = nullptr;
    std::uint64_t offset = 0;
  };
  Result<Spot> next_spot(std::size_t range);
  bool proves() const { return packs_.digest() == DigestMode::tree_sha256; }

  Packs packs_;
  ImportTuning tuning_;
  std::unique_ptr<TempArea> temp_;
  KnownBlobs known_;
  FreshBlobs fresh_;
  ThreadPool pool_;
  ThreadPool writer_{1};  // a file takes one write at a time: more threads would only wait for one another
  WindowRing ring_;
  std::deque<ImportWindow*> unresolved_;  // filled, oldest first
  FileState file_;
  std::optional<std::uint64_t> no_clones_from_;  // a device
  bool last_was_known_ = false;
  bool spent_ = false;
  std::uint64_t shared_bytes_ = 0;
};

}  // namespace weft

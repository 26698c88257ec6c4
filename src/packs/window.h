// The buffers of an import. A window holds consecutive extents, or a slice of one large extent, while they are hashed
// and written. A few windows of fixed size bound the importer's memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "packs/job_group.h"
#include "packs/pack_writer.h"
#include "packs/source.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// The size of one read, and the unit of cancelling.
inline constexpr std::size_t kReadStep = kDigestChunk;
inline constexpr std::size_t kWindowExtentsMax = 32768;
// Returns the best size of one hash job, in bytes.
std::size_t hash_job_bytes();

struct WindowExtent {
  std::size_t range = 0;  // index of the file's range
  std::size_t at = 0;     // offset of its bytes in the window
  ContentId id;
  std::vector<Digest> chunks;
};

class ImportWindow {
 public:
  ImportWindow(ThreadPool& hashers, ThreadPool& writer, std::size_t capacity)
      : capacity_(capacity), hashing(hashers), writing(writer), plain(hashers) {}

  std::size_t capacity() const { return capacity_; }
  // The window's memory: one block more than the capacity. So content can start at any offset within the first block,
  // and needs no copy for writing if that offset is congruent to its place in the pack.
  std::span<std::byte> space() {
    if (!space_) space_ = make_block_buffer(capacity_ + kPackBlock);
    return {space_.get(), capacity_ + kPackBlock};
  }
  std::span<const std::byte> bytes_of(const WindowExtent& extent) {
    return space().subspan(extent.at, extent.id.length);
  }

  void forget_space() { space_.reset(); }  // only while no jobs use it

  // Returns how many ranges, from the first on, fit into one window.
  std::size_t count_fitting(std::span<const Range> ranges) const;
  // Reads the ranges on this thread and hashes them on the pool; finish_ids() completes the ids. The ranges are
  // consecutive and fit; `first` is the number of the first.
  Status fill(Source& source, std::span<const Range> ranges, std::size_t first);
  Status finish_ids();

  std::vector<WindowExtent> extents;

 private:
  struct Piece {
    std::size_t extent;
    std::size_t chunk;
  };
  std::span<const std::byte> bytes_of(const Piece& piece);
  void lay_out(std::span<const Range> ranges, std::size_t first);
  void hash_pieces(std::size_t first, std::size_t last);
  void hash_ready(std::size_t filled);

  std::size_t capacity_;
  BlockBuffer space_;
  std::vector<Piece> pieces_;
  std::size_t next_piece_ = 0;  // the first piece that no job has yet

 public:
  // Last members: destroyed first, they wait for their jobs, which use the members above.
  JobGroup hashing;
  JobGroup writing;
  JobGroup plain;  // the plain SHA-256 of the file. Not needed to look up extents, so it may lag behind `hashing`
};

}  // namespace weft

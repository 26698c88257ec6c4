// The buffers of an import: each holds some consecutive extents, or a slice of one large extent, while it is hashed and
// written. There are a few of fixed size: they bound the importer's memory whatever it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "packs/job_group.h"
#include "packs/pack_writer.h"
#include "packs/source.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// One read; also the unit of cancelling.
inline constexpr std::size_t kReadStep = kDigestChunk;
inline constexpr std::size_t kWindowExtentsMax = 32768;
// So much of one content is hashed best in one job.
std::size_t hash_job_bytes();

struct WindowExtent {
  std::size_t range = 0;  // which of the file's ranges
  std::size_t at = 0;     // where its bytes are in the window
  ContentId id;
  std::vector<Digest> chunks;
};

class ImportWindow {
 public:
  ImportWindow(ThreadPool& hashers, ThreadPool& writer, std::size_t capacity)
      : capacity_(capacity), hashing(hashers), writing(writer) {}

  std::size_t capacity() const { return capacity_; }
  // A block more than the capacity, so that content may begin anywhere in the first: where it is congruent to its
  // place in the pack, writing needs no copy.
  std::span<std::byte> space() {
    if (!space_) space_ = make_block_buffer(capacity_ + kPackBlock);
    return {space_.get(), capacity_ + kPackBlock};
  }
  std::span<const std::byte> bytes_of(const WindowExtent& extent) {
    return space().subspan(extent.at, extent.id.length);
  }

  void forget_space() { space_.reset(); }  // when no jobs use it

  // How many of these ranges, from the first on, go into one window.
  std::size_t count_fitting(std::span<const Range> ranges) const;
  // Reads the ranges on this thread and computes their SHA-256 trees on the pool; ids are complete after finish_ids().
  // Ranges are consecutive and fit; `first` is the number of the first.
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
  std::size_t next_piece_ = 0;  // not given to the pool yet

 public:
  // Last, so that they are destroyed, which waits for their jobs, before what the jobs use.
  JobGroup hashing;
  JobGroup writing;
};

}  // namespace weft

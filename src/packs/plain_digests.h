// The plain SHA-256 of the files of an import, computed from the windows that the import reads into anyway.
//
// SHA-256 is sequential: the bytes of one file are hashed in their order, by one job at a time. The jobs run on the
// import's pool, so the reading thread does not hash, and the jobs of several sources run side by side. A window is not
// filled again before the jobs have hashed its old bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "base/mutex.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "packs/job_group.h"
#include "weft/store/publish.h"

namespace weft {

// One source. feed() belongs to one thread. The destructor waits for the jobs.
class PlainDigest {
 public:
  // Sets sums->digests to one digest for each size, and fills them in as the bytes come. An empty file's is there at
  // once.
  PlainDigest(ThreadPool& pool, std::shared_ptr<PlainSums> sums);
  ~PlainDigest() { wait(); }
  PlainDigest(const PlainDigest&) = delete;
  PlainDigest& operator=(const PlainDigest&) = delete;

  // Takes the next bytes of the source. They stay unchanged until user.wait() returns. Bytes after the last file are
  // ignored.
  void feed(std::span<const std::byte> bytes, JobGroup& user);
  void wait();  // until all bytes of feed() are hashed
  bool idle();  // true if all bytes of feed() are hashed

 private:
  struct Piece {
    std::span<const std::byte> bytes;
    JobGroup* user = nullptr;
  };
  void work();
  void hash(std::span<const std::byte> bytes);
  std::size_t hash_whole(std::span<const std::byte> bytes);
  void pass_empty();

  ThreadPool& pool_;
  const std::shared_ptr<PlainSums> sums_;
  // Used by one thread at a time: the job, or feed() while there is none.
  std::size_t file_ = 0;        // the first file that lacks bytes
  std::uint64_t left_ = 0;      // bytes that the open file lacks
  std::optional<Sha256> open_;  // set while a file is incomplete
  Mutex mutex_;
  Condition done_;
  std::deque<Piece> waiting_ WEFT_GUARDED_BY(mutex_);
  bool working_ WEFT_GUARDED_BY(mutex_) = false;
};

// All sources of an import. One thread.
class PlainDigests {
 public:
  explicit PlainDigests(ThreadPool& pool) : pool_(pool) {}
  // Returns the hashing of the next source; nullptr without sums. Valid until the next begin() or finish().
  PlainDigest* begin(std::shared_ptr<PlainSums> sums);
  void finish();  // waits until the sums of all sources are complete

 private:
  ThreadPool& pool_;
  std::deque<std::unique_ptr<PlainDigest>> sources_;  // oldest first
};

}  // namespace weft

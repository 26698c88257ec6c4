// Tracks by locks alone which states of the index have readers. LMDB's own reader table, which MDB_NOLOCK turns off,
// identifies readers by process id. Process ids collide between containers, entries of dead processes stay, and readers
// need write permission.
//
// `index/readers` has one lock byte for even and one for odd transactions. The locks are open-file-description locks:
// they need no write permission and no process ids, and end with their holder. A third byte is locked, shared, by each
// process that has the index open, so that no other process removes the store.
//   A reader of state T holds byte T % 2, shared. It reads the number T of the last transaction, locks, begins, and
//   checks that it got T. If not, it unlocks and tries again.
//   The writer of transaction W, before it begins, locks byte W % 2 exclusively once, and unlocks it.
// Why that is enough: transaction W overwrites the meta page of state W-2, and pages that W-2 or earlier transactions
// freed, which only states up to W-3 show. Readers of W-2 hold byte W % 2, so none is left when the writer has had the
// byte. In the same way, the writers of W-1 and W-2 have waited for the readers of W-3 and W-4, and so on. A reader
// that locks byte W % 2 later has read a T ≤ W-2 that is out of date. W-1 is committed, so the reader gets another
// number than T and unlocks. New readers lock byte (W-1) % 2, and the writer does not wait for them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// The lock bytes of one index for one process. Any thread.
class Generations : public std::enable_shared_from_this<Generations> {
 public:
  // `index_dir` has a file "readers". A wait ends after wait_ms with Errc::busy, or with `patience` with
  // Errc::cancelled.
  static Result<std::shared_ptr<Generations>> open(const SafePath& index_dir, bool write, std::uint64_t wait_ms,
                                                   Patience patience = {});

  // Holds the lock of a state until destroyed.
  class Hold {
   public:
    Hold() = default;
    ~Hold();
    Hold(Hold&& other) noexcept : owner_(std::move(other.owner_)), parity_(other.parity_) {}
    Hold& operator=(Hold&& other) noexcept;
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class Generations;
    Hold(std::shared_ptr<Generations> owner, unsigned parity) : owner_(std::move(owner)), parity_(parity) {}
    std::shared_ptr<Generations> owner_;
    unsigned parity_ = 0;
  };

  Result<Hold> hold(std::uint64_t transaction);
  // For the writer of `transaction`: waits until the state two transactions before it has no readers.
  Status drain(std::uint64_t transaction);
  // Only if opened for writing. True if no other process has the index open; then none can open it as long as this
  // object lives.
  Result<bool> lock_alone();

 private:
  Generations(SafePath path, Fd readers, Fd writer, std::uint64_t wait_ms, Patience patience)
      : path_(std::move(path)),
        readers_(std::move(readers)),
        writer_(std::move(writer)),
        wait_ms_(wait_ms),
        patience_(std::move(patience)) {}
  Status wait_byte(int fd, LockKind kind, unsigned byte) const;
  void release(unsigned parity);

  const SafePath path_;
  const Fd readers_;  // one file description for all snapshots of the process; its locks are counted
  const Fd writer_;   // another description, so that readers of this process exclude its writer too
  const std::uint64_t wait_ms_;
  const Patience patience_;
  std::mutex mutex_;
  std::array<std::uint64_t, 2> counts_{};  // guarded by mutex_
};

}  // namespace weft

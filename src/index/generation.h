// Which states of the index are being read, told by locks alone. LMDB's own reader table (MDB_NOLOCK turns it off)
// knows readers by process id, which collides between containers, keeps entries of the dead, and must be writable by
// readers.
//
// `index/readers` has one lock byte for even and one for odd transactions, taken as open-file-description locks: they
// ask for no right to write, know no process ids, and go when their holder dies. A third byte is held, shared, by each
// process that has the index open, so that a store is not taken away under anybody.
//   A reader of state T holds byte T % 2, shared. It reads the last transaction's number T, locks, begins, and looks
//   whether it got T; if not, it lets go and tries again.
//   The writer of transaction W, before it begins, takes byte W % 2 exclusively once, and lets go.
// Why that is enough. Transaction W overwrites the meta page of W-2, and pages that W-2 or earlier freed, which only
// states up to W-3 show. Readers of W-2 hold byte W % 2, so there are none when the writer has had it; readers of W-4
// and earlier held it before W-2 began. A reader that locks byte W % 2 after that has read T ≤ W-2 too long ago: W-1 is
// committed, it sees another number than T and lets go. New readers take byte (W-1) % 2 and are not waited for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// The lock bytes of one index as one process uses them. Any thread.
class Generations : public std::enable_shared_from_this<Generations> {
 public:
  // `index_dir` has a file "readers". wait_ms bounds every wait, then Errc::busy; so does patience, Errc::cancelled.
  static Result<std::shared_ptr<Generations>> open(const SafePath& index_dir, bool write, std::uint64_t wait_ms,
                                                   Patience patience = {});

  // Keeps the lock of a state; lets go when destroyed.
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
  // For the writer of `transaction`: waits until nobody reads the state two before it.
  Status drain(std::uint64_t transaction);
  // True: no other process has the index open, and none opens it while this lives. For one that writes.
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
  const Fd readers_;  // one description for all snapshots of the process, counted
  const Fd writer_;   // another one: a process's own readers exclude its writer, too
  const std::uint64_t wait_ms_;
  const Patience patience_;
  std::mutex mutex_;
  std::array<std::uint64_t, 2> counts_{};  // guarded by mutex_
};

}  // namespace weft

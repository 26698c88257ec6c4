// Who waits for the writer lock of an index, in order: a writer that asks for it again at once, as gc does between its
// batches, gets it after all who asked before.
//
// `index/queue` has no bytes, only open-file-description locks. Whoever waits holds one byte of it, his ticket: the
// byte behind the last that anybody holds. Byte 0 is held for the moment in which a ticket is taken. The writer lock is
// for whoever has the first ticket, and his ticket goes when he has it. A ticket ends with its process.
#pragma once

#include <cstdint>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// A place in the queue, until it is destroyed. One thread.
class QueueTicket {
 public:
  // Makes the file if it is not there.
  static Result<QueueTicket> take(const SafePath& index_dir, const Patience& patience);

  std::uint64_t number() const { return number_; }
  // Whether nobody who waits has an earlier one.
  Result<bool> is_first() const;

 private:
  QueueTicket(SafePath path, Fd fd, std::uint64_t number)
      : path_(std::move(path)), fd_(std::move(fd)), number_(number) {}
  SafePath path_;
  Fd fd_;
  std::uint64_t number_;
};

// Locks `writer`, the file `index/writer`, exclusively, when all who asked before had it. Errors as wait_for_lock. One
// who has the first ticket and does not take the lock, because his process was stopped, is passed over after a second.
Status wait_for_writer(const SafePath& index_dir, int writer, const Patience& patience);

}  // namespace weft

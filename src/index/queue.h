// A fair queue for the writer lock of an index. A writer that requests the lock again at once, as gc does between its
// batches, gets it after all writers that requested it before.
//
// `index/queue` is empty and used only for open-file-description locks. A waiting writer holds one byte, its ticket:
// the byte after the last held one. Byte 0 is locked while a ticket is taken. The writer with the lowest ticket takes
// the writer lock and then releases its ticket. A ticket ends with its process.
#pragma once

#include <cstdint>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// A ticket, held until destroyed. One thread.
class QueueTicket {
 public:
  // Creates the file if it does not exist.
  static Result<QueueTicket> take(const SafePath& index_dir, const Patience& patience);

  std::uint64_t number() const { return number_; }
  // True if no waiting writer has an earlier ticket.
  Result<bool> is_first() const;

 private:
  QueueTicket(SafePath path, Fd fd, std::uint64_t number)
      : path_(std::move(path)), fd_(std::move(fd)), number_(number) {}
  SafePath path_;
  Fd fd_;
  std::uint64_t number_;
};

// Locks `writer`, the file `index/writer`, exclusively, in the order of requests. Errors as wait_for_lock(). If the
// first writer in the queue does not take the free lock for a second, because its process was stopped, it is skipped.
Status wait_for_writer(const SafePath& index_dir, int writer, const Patience& patience);

}  // namespace weft

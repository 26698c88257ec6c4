// The pace at which this node reads from one peer: a ReadWindow that all reads of the peer share. Any thread.
#pragma once

#include <optional>

#include "base/mutex.h"
#include "peers/read_window.h"

namespace weft {

class ReadPace {
 public:
  // Returns the next piece of at most `left` bytes; nothing if the window is full. With `first` it always returns a
  // piece, so that no read waits for reads of other threads.
  std::optional<ReadWindow::Piece> ask(std::size_t left, bool first) {
    const MutexLock lock(mutex_);
    const std::size_t length = std::min(left, window_.piece());
    if (!first && !window_.has_room(length)) return {};
    return window_.ask(length, Deadline::clock::now());
  }
  void came(const ReadWindow::Piece& piece) {
    const MutexLock lock(mutex_);
    window_.came(piece, Deadline::clock::now());
  }
  double rate() {  // bytes a second; 0: unknown
    const MutexLock lock(mutex_);
    return window_.rate();
  }
  void lost(const ReadWindow::Piece& piece) {
    const MutexLock lock(mutex_);
    window_.lost(piece);
  }

 private:
  Mutex mutex_;
  ReadWindow window_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft

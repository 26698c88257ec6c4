// The readers of .weft/events. A read that finds no event is kept and answered when one arrives, so that no serving
// thread waits. The place of each reader is in the table of open files, so that a new server goes on there. No line is
// lost or repeated: the kernel keeps the offset of each reader and resends an unanswered read.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "fuse/kernel/request_log.h"
#include "fuse/state/open_files.h"
#include "os/bell.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"
#include "weft/store/commits.h"

namespace weft {

// Any thread, except for start() and stop().
class EventFeed {
 public:
  // All outlive this.
  EventFeed(Vfs& vfs, OpenFiles& files, RequestLog& requests) : vfs_(vfs), files_(files), requests_(requests) {}
  ~EventFeed() { stop(); }

  // Call before the first request. Takes over the readers of an earlier server. `device` outlives this.
  void start(int device);
  // Answers waiting reads with EINTR. Call while the session lives.
  void stop();

  // Call when `handle` was opened: it reads events from now on. May be repeated.
  Status opened(std::uint64_t handle);
  // Answers the request, now or later. `request_number` is current_request(). Without `wait` it answers EAGAIN if there
  // is no event.
  void read(fuse_req_t request, std::uint64_t request_number, std::uint64_t handle, std::uint64_t offset,
            std::size_t size, bool wait);
  // True if `handle` can be read now. If not, the kernel is notified by `poll_handle` when it can; 0: no notification.
  bool readable(std::uint64_t handle, std::uint64_t poll_handle);

 private:
  struct Read {
    fuse_req_t request;
    std::uint64_t handle;
    std::uint64_t offset;
    std::size_t size;
  };
  struct Piece {
    std::string text;
    StreamPlace next;
  };

  Status watch() WEFT_REQUIRES(mutex_);
  void run(CommitWatch& commits);
  void poll() WEFT_EXCLUDES(mutex_);
  static void interrupt(fuse_req_t request, void* feed);
  bool answer(const Read& read) WEFT_REQUIRES(mutex_);
  Result<std::optional<Piece>> piece_at(const Read& read) WEFT_REQUIRES(mutex_);
  Result<const std::vector<EventLines>*> lines_from(std::uint64_t position) WEFT_REQUIRES(mutex_);
  bool has_lines(std::uint64_t handle) WEFT_REQUIRES(mutex_);
  void tell_pollers() WEFT_REQUIRES(mutex_);

  Vfs& vfs_;
  OpenFiles& files_;
  RequestLog& requests_;
  int device_ = -1;
  const Bell ended_;
  Mutex mutex_;
  std::unique_ptr<CommitWatch> commits_ WEFT_GUARDED_BY(mutex_);  // created with the first reader
  std::thread thread_ WEFT_GUARDED_BY(mutex_);                    // created with the first reader
  std::vector<Read> waiting_ WEFT_GUARDED_BY(mutex_);
  // The events last read from the tree, shared by all readers at that position.
  std::uint64_t lines_position_ WEFT_GUARDED_BY(mutex_) = 0;
  std::optional<std::vector<EventLines>> lines_ WEFT_GUARDED_BY(mutex_);
  bool stopped_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft

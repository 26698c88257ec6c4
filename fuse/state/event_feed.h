// The readers of .weft/events. A read that finds nothing is kept and answered when something comes, so no thread that
// serves waits. Where each reader is stands in the table of open files, so a new server goes on: no line is lost or
// comes twice, because the kernel keeps the offset of each reader and sends an unanswered read again.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fuse/kernel/request_log.h"
#include "fuse/state/open_files.h"
#include "os/bell.h"
#include "weft/commits.h"
#include "weft/result.h"
#include "weft/vfs.h"

namespace weft {

// Any thread, but for start() and stop().
class EventFeed {
 public:
  // All outlive this.
  EventFeed(Vfs& vfs, OpenFiles& files, RequestLog& requests) : vfs_(vfs), files_(files), requests_(requests) {}
  ~EventFeed() { stop(); }
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;

  // Before the first request: goes on with the readers that a server before had. `device` outlives this.
  void start(int device);
  // Reads that wait end as interrupted. While the session lives.
  void stop();

  // Of an open handle: it reads what comes from now on. Fine to be repeated.
  Status opened(std::uint64_t handle);
  // Answers the request, now or later; `request_number` is current_request(). Without `wait`: with EAGAIN if there is
  // nothing.
  void read(fuse_req_t request, std::uint64_t request_number, std::uint64_t handle, std::uint64_t offset,
            std::size_t size, bool wait);
  // Can it be read now? If not, and `poll_handle` is not 0, the kernel is told when it can.
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

  Status watch();
  void run(CommitWatch& commits);
  void look();
  static void interrupt(fuse_req_t request, void* feed);
  // Under mutex_:
  bool answer(const Read& read);
  Result<std::optional<Piece>> piece_at(const Read& read);
  Result<const std::vector<EventLines>*> lines_from(std::uint64_t position);
  bool has_lines(std::uint64_t handle);
  void tell_pollers();

  Vfs& vfs_;
  OpenFiles& files_;
  RequestLog& requests_;
  int device_ = -1;
  const Bell ended_;
  std::mutex mutex_;
  std::unique_ptr<CommitWatch> commits_;  // guarded by mutex_; made with the first reader
  std::thread thread_;                    // the same
  std::vector<Read> waiting_;             // guarded by mutex_
  // What the tree said last, for all who read on from there; guarded by mutex_.
  std::uint64_t lines_position_ = 0;
  std::optional<std::vector<EventLines>> lines_;
  bool stopped_ = false;  // guarded by mutex_
};

}  // namespace weft

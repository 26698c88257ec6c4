#include "fuse/state/event_feed.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "fuse/kernel/errors.h"
#include "fuse/kernel/init_exchange.h"

namespace weft {

// Makes pollers ask again, so that this server records them.
void EventFeed::start(int device) {
  device_ = device;
  const std::vector<std::uint64_t> handles = files_.streams();
  if (handles.empty()) return;
  const MutexLock lock(mutex_);
  if (const Status watching = watch(); !watching.ok()) log_error(".weft/events: {}", watching.error().message);
  tell_pollers();
}

void EventFeed::stop() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    thread = std::move(thread_);
    for (const Read& read : std::exchange(waiting_, {})) fuse_reply_err(read.request, EINTR);
  }
  ended_.ring();
  if (thread.joinable()) thread.join();
}

Status EventFeed::watch() {
  if (commits_ || stopped_) return {};
  if (!ended_.valid()) return Error{Errc::io, "a pipe cannot be made: no file descriptor is left"};
  WEFT_TRY(commits_, vfs_.watch_commits());
  thread_ = std::thread([this, commits = commits_.get()] { run(*commits); });
  return {};
}

Status EventFeed::opened(std::uint64_t handle) {
  const MutexLock lock(mutex_);
  WEFT_CHECK(watch());
  if (files_.stream_place(handle)) return {};
  WEFT_TRY(const std::uint64_t now, vfs_.position());
  files_.set_stream_place(handle, StreamSlot::kNoPlace, {0, now});
  return {};
}

Result<const std::vector<EventLines>*> EventFeed::lines_from(std::uint64_t position) {
  if (!lines_ || lines_position_ != position) {
    lines_.reset();
    WEFT_TRY(lines_, vfs_.events(position));
    lines_position_ = position;
  }
  return &*lines_;
}

// Returns as many whole lines as fit. Returns a part of a line only if not even the first line fits.
Result<std::optional<EventFeed::Piece>> EventFeed::piece_at(const Read& read) {
  const auto place = files_.stream_place(read.handle, read.offset);
  if (!place) return Error{Errc::io, ".weft/events: it is not open"};
  StreamPlace from = *place;
  std::uint64_t done = read.offset - from.offset;  // bytes of these lines that the reader already has
  for (;;) {
    WEFT_TRY(const auto* lines, lines_from(from.position));
    Piece piece{{}, from};
    for (const EventLines& record : *lines) {
      const std::size_t skipped = std::min<std::size_t>(done, record.text.size());
      done -= skipped;
      const std::string_view left = std::string_view(record.text).substr(skipped);
      if (piece.text.size() + left.size() > read.size) {
        if (piece.text.empty()) piece = {std::string(left.substr(0, read.size)), from};
        return std::optional(std::move(piece));
      }
      piece.text += left;
      piece.next = {read.offset + piece.text.size(), record.position};
    }
    if (!piece.text.empty()) return std::optional(std::move(piece));
    if (piece.next.position == from.position) return std::optional<Piece>();
    files_.set_stream_place(read.handle, from.offset, piece.next);
    from = piece.next;
    done = 0;
  }
}

// False if there is nothing to read yet.
bool EventFeed::answer(const Read& read) {
  const auto piece = piece_at(read);
  if (!piece.ok()) {
    log_warning("{}", piece.error().message);
    fuse_reply_err(read.request, errno_of(piece.error().code));
    return true;
  }
  if (!*piece) return false;
  const StreamPlace& next = (*piece)->next;
  if (next.offset == read.offset + (*piece)->text.size())
    files_.set_stream_place(read.handle, files_.stream_place(read.handle, read.offset)->offset, next);
  fuse_reply_buf(read.request, (*piece)->text.data(), (*piece)->text.size());
  return true;
}

// Registers interrupt() before the read waits: libfuse calls it at once if the interrupt came first, and then it finds
// nothing to remove.
void EventFeed::read(fuse_req_t request, std::uint64_t request_number, std::uint64_t handle, std::uint64_t offset,
                     std::size_t size, bool wait) {
  const Read read{request, handle, offset, size};
  fuse_req_interrupt_func(request, interrupt, this);
  const MutexLock lock(mutex_);
  if (answer(read)) return;
  if (!wait || stopped_ || fuse_req_interrupted(request) != 0) {
    fuse_reply_err(request, wait ? EINTR : EAGAIN);
    return;
  }
  requests_.set_aside(request_number);
  waiting_.push_back(read);
}

void EventFeed::interrupt(fuse_req_t request, void* feed) {
  auto& self = *static_cast<EventFeed*>(feed);
  const MutexLock lock(self.mutex_);
  const auto found = std::ranges::find(self.waiting_, request, &Read::request);
  if (found == self.waiting_.end()) return;
  self.waiting_.erase(found);
  fuse_reply_err(request, EINTR);
}

// True if a read would not wait. An error counts: the read reports it.
bool EventFeed::has_lines(std::uint64_t handle) {
  const auto place = files_.stream_place(handle);
  if (!place) return true;
  const auto lines = lines_from(place->position);
  return !lines.ok() || std::ranges::any_of(**lines, [](const EventLines& record) { return !record.text.empty(); });
}

bool EventFeed::readable(std::uint64_t handle, std::uint64_t poll_handle) {
  const MutexLock lock(mutex_);
  if (has_lines(handle)) return true;
  files_.set_poll_handle(handle, poll_handle);
  return false;
}

void EventFeed::tell_pollers() {
  for (const std::uint64_t handle : files_.streams()) {
    const std::uint64_t poll_handle = files_.poll_handle(handle);
    if (poll_handle == 0) continue;
    files_.set_poll_handle(handle, 0);
    if (const Status told = notify_poll(device_, poll_handle); !told.ok()) log_warning("{}", told.error().message);
  }
}

void EventFeed::poll() {
  const MutexLock lock(mutex_);
  lines_.reset();
  std::erase_if(waiting_, [this](const Read& read) WEFT_REQUIRES(mutex_) { return answer(read); });
  tell_pollers();
}

void EventFeed::run(CommitWatch& commits) {
  for (;;) {
    std::array<pollfd, 2> events{pollfd{ended_.fd(), POLLIN, 0}, pollfd{commits.fd(), POLLIN, 0}};
    ::poll(events.data(), events.size(), -1);
    if (events[0].revents != 0) return;
    commits.clear();
    poll();
  }
}

}  // namespace weft

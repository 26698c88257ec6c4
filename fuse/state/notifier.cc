#include "fuse/state/notifier.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

// The kernel takes a reply in two steps: it wakes who asked, and that thread, when it comes to run, puts the attributes
// into an inode that was not there before. A notification between the two finds nothing to forget; so all is told once
// more, after a time that such a thread does not sleep through.
constexpr std::chrono::milliseconds kRepeatAfter(200);
// The watch misses nothing that we know of. This is in case it does, and slow: an idle mount sleeps.
constexpr std::chrono::milliseconds kLookAnyway(2000);
constexpr std::chrono::milliseconds kNow(0);
constexpr std::uint64_t kDroppedAtOnce = 32U << 20U;  // bytes of pages; a few milliseconds

}  // namespace

Status Notifier::start(std::unique_ptr<KernelCache> cache, std::uint64_t& told) {
  if (!wake_.valid()) return Error{Errc::io, "no descriptor to wake the notifier by"};
  cache_ = std::move(cache);
  told_ = &told;
  // A kernel that knows nothing is not told anything: what is asked for first can be kept at once.
  if (told != 0) {
    position_ = told - 1;
  } else {
    const Status followed = follow();
    following_ = followed.ok();
    if (!following_) start_over();
    note(followed);
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

void Notifier::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.ring();
  }
  thread_.join();
}

bool Notifier::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

std::string Notifier::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Notifier::ask(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  wake_.ring();
}

void Notifier::invalidate_entry(Ino dir, std::string name) {
  ask([dir, name = std::move(name)](KernelCache& cache) { cache.expire_name(dir, name); });
}

void Notifier::invalidate_attr(Ino ino) {
  ask([ino](KernelCache& cache) { cache.forget_attr(ino); });
}

void Notifier::drop_pages(Ino ino, std::uint64_t size) {
  drop_pages_from(0, ino, size);
}

void Notifier::drop_pages_from(std::uint64_t offset, Ino ino, std::uint64_t size) {
  if (offset >= size) return;
  ask([this, offset, ino, size](KernelCache& cache) {
    cache.forget_pages(ino, offset, std::min(kDroppedAtOnce, size - offset));
    drop_pages_from(offset + kDroppedAtOnce, ino, size);
  });
}

void Notifier::do_tasks() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) task(*cache_);
}

Status Notifier::tell_commits(std::uint64_t from, std::uint64_t to) {
  return vfs_.changes(from, to, [this](const std::vector<Ino>& changed) {
    for (const Ino ino : changed) cache_->forget_attr(ino);
  });
}

Status Notifier::catch_up(std::uint64_t now) {
  freshness_.advance();  // replies that lack what is told now are sent before it
  WEFT_CHECK(tell_commits(*position_, now));
  position_ = now;
  if (!repeat_ && *told_ != now + 1) repeat_ = Repeat{Clock::now() + kRepeatAfter, now};
  return {};
}

Status Notifier::repeat() {
  const std::uint64_t to = repeat_->to;
  WEFT_CHECK(tell_commits(*told_ - 1, to));
  *told_ = to + 1;
  repeat_.reset();
  if (to != *position_) repeat_ = Repeat{Clock::now() + kRepeatAfter, *position_};
  return {};
}

Status Notifier::follow() {
  if (!watch_) {
    WEFT_TRY(watch_, vfs_.watch());
  }
  watch_->clear();
  WEFT_TRY(const std::uint64_t now, vfs_.position());
  if (!position_) {
    position_ = now;
    *told_ = now + 1;
  }
  if (now != *position_ || !following_) WEFT_CHECK(catch_up(now));
  if (repeat_ && Clock::now() >= repeat_->when) WEFT_CHECK(repeat());
  return {};
}

// What the kernel keeps may be old, and nobody knows which: all of it goes, or else the whole history is told again.
void Notifier::start_over() {
  freshness_.stop();
  following_ = false;
  repeat_.reset();
  if (!position_) return;  // it keeps nothing that changes
  *told_ = 1;
  position_ = 0;
  if (cache_->forget_names()) position_.reset();
}

void Notifier::wait() {
  auto pause = kLookAnyway;
  if (repeat_)
    pause = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(repeat_->when - Clock::now()), kNow, kLookAnyway);
  std::array<pollfd, 2> events{pollfd{wake_.fd(), POLLIN, 0}, pollfd{watch_ ? watch_->fd() : -1, POLLIN, 0}};
  ::poll(events.data(), events.size(), static_cast<int>(pause.count()));
  wake_.clear();
}

void Notifier::note(const Status& followed) {
  const std::string problem = followed.ok() ? "" : followed.error().message;
  const std::lock_guard lock(mutex_);
  if (problem == problem_) return;
  log_warning("what changes is {}",
              problem.empty() ? "kept by the kernel again" : "not kept by the kernel: " + problem);
  problem_ = problem;
}

void Notifier::run() {
  while (!stopping()) {
    do_tasks();
    Status followed = follow();
    if (!followed.ok()) {
      log_info("the kernel's names start over: {}", followed.error().message);
      start_over();
      followed = follow();
    }
    if (!followed.ok()) start_over();
    following_ = followed.ok();
    note(followed);
    wait();
  }
}

}  // namespace weft

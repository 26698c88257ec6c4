#include "reading/prefetch.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "reading/prefetched_file.h"

namespace weft {
namespace {

// Each thread brings in one large page, and all together a whole window. If a reader of the file reaches a page that is
// not being read yet, the kernel reads ahead in small pages.
constexpr unsigned kReaders = 32;
constexpr std::size_t kLeftMax = 64;  // files that are watched after their last close

}  // namespace

Prefetcher::Watch::~Watch() {
  std::shared_ptr<PrefetchedFile> over = file_;
  {
    const std::lock_guard lock(owner_.mutex_);
    std::erase(owner_.watched_, file_);
    if (owner_.thread_.joinable() && file_->leave(Clock::now())) {
      owner_.left_.push_back(file_);
      over = owner_.take_oldest_left();
    }
  }
  if (over) over->end();
}

void Prefetcher::Watch::told(std::uint64_t offset, std::uint64_t length) {
  if (file_->told(offset, length)) owner_.wake_at({});
}

// Opening a file that is all in memory wakes no thread. The opener does not scan the file either: readers need the
// processors, and may wait for this thread.
void Prefetcher::Watch::begin() {
  owner_.wake_at(file_->begin(Clock::now()));
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_at({});
  if (thread_.joinable()) thread_.join();
  for (const auto& left : left_) left->end();
}

std::unique_ptr<Prefetcher::Watch> Prefetcher::watch(PrefetchSubject subject) {
  const std::lock_guard lock(mutex_);
  start();
  auto file = rejoined(subject);
  if (!file) file = watched_.emplace_back(std::make_shared<PrefetchedFile>(std::move(subject)));
  return std::unique_ptr<Watch>(new Watch(*this, std::move(file)));
}

std::shared_ptr<PrefetchedFile> Prefetcher::rejoined(const PrefetchSubject& subject) {
  const auto found = std::ranges::find_if(left_, [&](const auto& file) { return file->rejoin(subject); });
  if (found == left_.end()) return nullptr;
  watched_.push_back(std::move(*found));
  left_.erase(found);
  return watched_.back();
}

void Prefetcher::drop_over() {
  const std::lock_guard lock(mutex_);
  std::erase_if(left_, [](const auto& file) { return file->is_over(); });
}

std::shared_ptr<PrefetchedFile> Prefetcher::take_oldest_left() {
  if (left_.size() <= kLeftMax) return nullptr;
  const auto oldest = std::ranges::min_element(left_, {}, [](const auto& file) { return file->left_since(); });
  auto taken = std::move(*oldest);
  left_.erase(oldest);
  return taken;
}

void Prefetcher::start() {
  if (thread_.joinable()) return;
  timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (!timer_.valid()) return;  // without a free descriptor or thread nothing is read ahead; the next watch() retries
  readers_ = std::make_unique<ThreadPool>(kReaders);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    timer_ = Fd();
  }
}

// Submits parts without a lock, because a pool without threads runs them in this thread.
Prefetcher::Clock::time_point Prefetcher::step(const std::shared_ptr<PrefetchedFile>& watched, Clock::time_point now) {
  const PrefetchedFile::Step step = watched->step(now);
  for (const auto& part : step.parts) readers_->submit([watched, part] { watched->bring_in(part); });
  return step.due;
}

void Prefetcher::wake_at(Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  if (when >= wakes_at_ || !timer_.valid()) return;
  wakes_at_ = when;
  const auto at = std::max(when.time_since_epoch(), std::chrono::nanoseconds(1));  // 0 would disarm the timer
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
  itimerspec expiry{};
  expiry.it_value = {static_cast<time_t>(seconds.count()), static_cast<long>((at - seconds).count())};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &expiry, nullptr);
}

void Prefetcher::run() {
  for (;;) {
    std::vector<std::shared_ptr<PrefetchedFile>> watched;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      wakes_at_ = Clock::time_point::max();
      watched = watched_;
      watched.insert(watched.end(), left_.begin(), left_.end());
    }
    auto next = Clock::time_point::max();
    const auto now = Clock::now();
    for (const auto& file : watched) next = std::min(next, step(file, now));
    drop_over();
    watched.clear();  // closes the last descriptors of files that are over, with no lock held
    wake_at(next);
    std::uint64_t times = 0;
    static_cast<void>(::read(timer_.get(), &times, sizeof times));
  }
}

}  // namespace weft

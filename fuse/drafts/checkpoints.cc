#include "fuse/drafts/checkpoints.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "fuse/drafts/caller.h"
#include "fuse/drafts/draft_check.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kBusyAgain{3};  // the end of a mapping raises no event
constexpr std::chrono::seconds kRecoverEvery{60};
constexpr std::chrono::seconds kFailedAgain{60};  // after an origin or registry did not answer, or the disk was full

bool may_pass(int failed) {
  return failed == -EHOSTUNREACH || failed == -ETIMEDOUT || failed == -ENOSPC || failed == -EDQUOT;
}

}  // namespace

void Checkpoints::start() {
  looks_ = std::thread([this] { look_on(); });
  publishes_ = std::thread([this] { publish_on(); });
}

void Checkpoints::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (looks_.joinable()) looks_.join();
  if (publishes_.joinable()) publishes_.join();
}

void Checkpoints::changed(Ino dir) {
  look_again(dir, std::chrono::seconds(0));
}

void Checkpoints::look_again(Ino dir, std::chrono::seconds after) {
  const Time when = std::chrono::steady_clock::now() + after;
  {
    const std::lock_guard lock(mutex_);
    const auto [due, fresh] = due_.emplace(dir, when);
    if (!fresh) due->second = std::min(due->second, when);
  }
  wake_.notify_all();
}

bool Checkpoints::goes_on() {
  const std::lock_guard lock(mutex_);
  return !stop_;
}

void Checkpoints::look_on() {
  for (auto& [order, folder] : publisher_.taken_before()) {
    order.user = with_groups(order.user.uid, order.user.gid);
    add({std::move(order), std::move(folder)});
  }
  look_below(kNewIno, 0);
  Time recovers = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto next = std::ranges::min_element(due_, {}, [](const auto& due) { return due.second; });
    const Time now = std::chrono::steady_clock::now();
    if (recovers <= now) {
      recovers = now + kRecoverEvery;
      lock.unlock();
      publisher_.recover(::time(nullptr));
      lock.lock();
    } else if (const Time when = next == due_.end() ? recovers : std::min(recovers, next->second); when > now) {
      wake_.wait_until(lock, when);
    } else {
      looking_at_ = next->first;
      due_.erase(next);
      lock.unlock();
      look(looking_at_);
      lock.lock();
      looking_at_ = 0;
      wake_.notify_all();
    }
  }
}

// True if a look at this directory, or at one above it, is due or running. Called with mutex_ held.
bool Checkpoints::wanted(Ino dir) {
  const Time now = std::chrono::steady_clock::now();
  do {
    const auto due = due_.find(dir);
    if (looking_at_ == dir || (due != due_.end() && due->second <= now)) return true;
  } while (dir != kNewIno && tree_.parent(dir, dir) == 0);
  return false;
}

// Outside of any training, does not wait for a look at another user's directory.
void Checkpoints::wait_for_look(Ino dir) {
  std::unique_lock lock(mutex_);
  if (!wanted(dir)) return;
  lock.unlock();
  if (!is_in_training(dir)) return;
  lock.lock();
  wake_.wait(lock, [&] { return stop_ || !wanted(dir); });
}

bool Checkpoints::is_in_training(Ino dir) {
  DraftFound facts;
  while (!tree_.is_shared(dir)) {
    if (tree_.lookup(dir, kDraftFactsFile, facts) == 0) return true;
    if (tree_.parent(dir, dir) != 0) return false;
  }
  return false;
}

void Checkpoints::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_all();
}

void Checkpoints::publish_on() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const int failed = publisher_.publish_staying(job.order, job.folder, [this] { return goes_on(); });
    if (may_pass(failed)) look_again(job.order.stays.ino, kFailedAgain);
    lock.lock();
  }
}

void Checkpoints::look_below(Ino dir, unsigned depth) {
  if (depth == limits::kPathComponentsMax) return;
  std::vector<Ino> below;
  bool training = false;
  tree_.list(dir, 0, [&](std::string_view name, const DraftFound& found, off_t) {
    if (name == kDraftFactsFile) training = true;
    if (S_ISDIR(found.st.st_mode) && name != "." && name != "..") below.push_back(found.ino);
    return true;
  });
  if (training) changed(dir);
  for (const Ino ino : below) look_below(ino, depth + 1);
}

// Looks at `dir` as a checkpoint, and as a directory of checkpoints.
void Checkpoints::look(Ino dir) {
  Ino above = 0;
  std::string path;
  Training training;
  found_busy_ = false;
  DraftFound found{dir, {}};
  if (tree_.stat(dir, found.st) != 0 || tree_.path(dir, path) != 0) return;  // it was removed
  if (dir != kNewIno && tree_.parent(dir, above) == 0 && open_training(above, training))
    consider(training, found, path.substr(path.rfind('/') + 1));
  if (!open_training(dir, training)) return;
  std::vector<std::pair<std::string, DraftFound>> all;
  tree_.list(dir, 0, [&](std::string_view name, const DraftFound& entry, off_t) {
    if (name != "." && name != "..") all.emplace_back(name, entry);
    return true;
  });
  for (const auto& [name, entry] : all) consider(training, entry, name);
}

bool Checkpoints::open_training(Ino dir, Training& training) {
  struct stat st {};
  if (tree_.is_shared(dir) || tree_.open(dir, O_RDONLY | O_DIRECTORY, training.fd) != 0) return false;
  if (::fstatat(training.fd.get(), kDraftFactsFile, &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  auto facts = read_draft_facts(training.fd.get());
  if (!facts.ok()) {
    refused_.insert(dir);
    refuse(training.fd.get(), facts.error());
    return false;
  }
  if (refused_.erase(dir) != 0) ::unlinkat(training.fd.get(), kDraftErrorFile, 0);
  if (!*facts || !(*facts)->each) return false;
  training.ino = dir;
  training.facts = std::move(**facts);
  training.owner = st.st_uid;
  return true;
}

bool Checkpoints::complete(const Training& training, int checkpoint, std::uint64_t& written_ns) const {
  struct stat last {
  }, published{};
  const std::string& when = training.facts.each->when;
  if (::fstatat(checkpoint, when.c_str(), &last, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(last.st_mode)) return false;
  written_ns = nanoseconds(last.st_mtim);
  return ::fstatat(checkpoint, kDraftPublishedFile, &published, AT_SYMLINK_NOFOLLOW) != 0 ||
         nanoseconds(published.st_mtim) != written_ns;
}

// A user's .weft.json must not publish what belongs to another user.
void Checkpoints::consider(const Training& training, const DraftFound& checkpoint, const std::string& name) {
  if (!S_ISDIR(checkpoint.st.st_mode) || checkpoint.st.st_uid != training.owner) return;
  if (::fnmatch(training.facts.each->pattern.c_str(), name.c_str(), FNM_PERIOD) != 0) return;
  Fd fd;
  std::uint64_t written_ns = 0;
  struct stat now {};
  if (tree_.open(checkpoint.ino, O_RDONLY | O_DIRECTORY, fd) != 0 || ::fstat(fd.get(), &now) != 0) return;
  if (now.st_uid != training.owner) return;  // the number belongs to another directory by now
  if (complete(training, fd.get(), written_ns)) take(training, checkpoint, fd.get(), written_ns);
}

void Checkpoints::take(const Training& training, const DraftFound& checkpoint, int fd, std::uint64_t written_ns) {
  Job job;
  job.order.user = with_groups(checkpoint.st.st_uid, checkpoint.st.st_gid);
  job.order.dir = training.ino;
  job.order.model = training.facts.each->model;
  job.order.stays = {checkpoint.ino, written_ns};
  const int failed = publisher_.take_staying(job.order, job.folder, !found_busy_);
  found_busy_ = found_busy_ || failed == -EBUSY;
  if (failed == -EBUSY) look_again(checkpoint.ino, kBusyAgain);
  if (failed == -EACCES) refuse(fd, Error{Errc::permission, "a directory in it is another user's"});
  if (may_pass(failed)) look_again(checkpoint.ino, kFailedAgain);
  if (failed == 0) add(std::move(job));
}

}  // namespace weft

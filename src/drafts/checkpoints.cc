#include "drafts/checkpoints.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/glob.h"
#include "base/log.h"
#include "drafts/draft_check.h"
#include "os/entries.h"
#include "os/lookups/users.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kBusyAgain{3};  // the end of a mapping raises no event
constexpr std::chrono::seconds kRecoverEvery{60};
constexpr std::chrono::seconds kFailedAgain{60};  // after an origin or registry did not answer, or the disk was full

bool may_pass(const Status& done) {
  if (done.ok()) return false;
  const Errc code = done.error().code;
  return code == Errc::unreachable || code == Errc::timed_out || code == Errc::no_space;
}

// True while a program writes the facts: a part of them says nothing.
bool is_written(int directory) {
  const auto file = open_at(directory, kDraftFactsFile, O_RDONLY | O_NONBLOCK);
  return file.ok() && !not_written(file->get());
}

// A leading dot must stand in the pattern, as in a shell.
bool matches(const std::string& pattern, const std::string& name) {
  return glob_matches(pattern, name) &&
         (!name.starts_with('.') || pattern.starts_with('.') || pattern.starts_with("\\."));
}

}  // namespace

void Checkpoints::start() {
  scanner_.start([this] { return scan_due(); });
  publishes_.start([this] { return publish_next(); });
}

void Checkpoints::stop() {
  scanner_.ask_to_end();
  publishes_.ask_to_end();
  {
    const MutexLock lock(mutex_);  // a waiter has either seen the end, or hears of it
  }
  scanned_.notify_all();
  scanner_.end();
  publishes_.end();
}

void Checkpoints::changed(Ino dir, uid_t user) {
  scan_again(dir, user, std::chrono::seconds(0));
}

void Checkpoints::scan_again(Ino dir, uid_t user, std::chrono::seconds after) {
  const Due due{std::chrono::steady_clock::now() + after, user};
  {
    const MutexLock lock(mutex_);
    const auto [known, fresh] = due_.emplace(dir, due);
    if (!fresh && due.when < known->second.when) known->second = due;
  }
  scanner_.wake();
}

// Finds the publishes and the trainings that an earlier server left.
void Checkpoints::find_unfinished() {
  for (auto& [order, folder] : publisher_.taken_before()) {
    order.user = with_groups(order.user.uid, order.user.gid);
    add({std::move(order), std::move(folder)});
  }
  std::vector<Ino> trainings;
  tree_.search([&](Ino dir, const std::string& name) {
    if (name == kDraftFactsFile) trainings.push_back(dir);
  });
  for (const Ino dir : trainings)
    if (const auto st = tree_.stat(dir); st.ok()) changed(dir, st->st_uid);
}

// Returns the directory that has been due for longest among those of the user whose turn it is; nothing if none is due.
std::optional<Ino> Checkpoints::next_due(Time now) {
  std::map<uid_t, std::map<Ino, Due>::iterator> longest;
  for (auto due = due_.begin(); due != due_.end(); ++due) {
    if (due->second.when > now) continue;
    const auto [known, fresh] = longest.emplace(due->second.user, due);
    if (!fresh && due->second.when < known->second->second.when) known->second = due;
  }
  if (longest.empty()) return std::nullopt;
  const auto turn = next_in_turn(longest, scanned_for_);
  scanned_for_ = turn->first;
  const Ino dir = turn->second->first;
  due_.erase(turn->second);
  return dir;
}

// Scans a directory that is due. Returns the pause until the next one is due.
Worker::Pause Checkpoints::scan_due() {
  if (!std::exchange(begun_, true)) find_unfinished();
  const Time now = std::chrono::steady_clock::now();
  if (recovers_ <= now) {
    recovers_ = now + kRecoverEvery;
    publisher_.recover(now);
  }
  Ino dir = 0;
  {
    const MutexLock lock(mutex_);
    const auto due = next_due(now);
    if (!due) {
      Time next = recovers_;
      for (const auto& later : due_) next = std::min(next, later.second.when);
      return next - now;
    }
    dir = scanning_ = *due;
  }
  scan(dir);
  {
    const MutexLock lock(mutex_);
    scanning_ = 0;
  }
  scanned_.notify_all();
  return {};
}

// True if a scan of this directory, or of one above it, is due or running.
bool Checkpoints::wanted(Ino dir) {
  const Time now = std::chrono::steady_clock::now();
  for (;;) {
    const auto due = due_.find(dir);
    if (scanning_ == dir || (due != due_.end() && due->second.when <= now)) return true;
    const auto above = dir == kNewIno ? Error{Errc::not_found, ""} : tree_.places().parent(dir);
    if (!above.ok()) return false;
    dir = *above;
  }
}

// Outside of any training, does not wait for a scan of another user's directory.
void Checkpoints::wait_for_scan(Ino dir) {
  {
    const MutexLock lock(mutex_);
    if (!wanted(dir)) return;
  }
  if (!is_in_training(dir)) return;
  UniqueLock lock(mutex_);
  while (!scanner_.ending() && wanted(dir)) scanned_.wait(lock);
}

bool Checkpoints::is_in_training(Ino dir) {
  while (!tree_.is_shared(dir)) {
    if (tree_.lookup(dir, kDraftFactsFile).ok()) return true;
    const auto above = tree_.places().parent(dir);
    if (!above.ok()) return false;
    dir = *above;
  }
  return false;
}

void Checkpoints::add(Job job) {
  {
    const MutexLock lock(mutex_);
    const uid_t user = job.order.user.uid;
    jobs_.add(user, std::move(job));
  }
  publishes_.wake();
}

Worker::Pause Checkpoints::publish_next() {
  std::optional<Job> job;
  {
    const MutexLock lock(mutex_);
    job = jobs_.next();
  }
  if (!job) return Worker::kUntilWoken;
  const Status done = publisher_.publish_staying(job->order, job->folder, [this]() -> Status {
    return publishes_.ending() ? Status(Error{Errc::cancelled, "interrupted"}) : Status();
  });
  if (may_pass(done)) scan_again(job->order.stays.ino, job->order.user.uid, kFailedAgain);
  return {};
}

std::vector<std::pair<std::string, DraftFound>> Checkpoints::entries_of(Ino dir) {
  std::vector<std::pair<std::string, DraftFound>> all;
  static_cast<void>(tree_.list(dir, 0, [&](const std::string& name, const DraftFound& entry, off_t) {
    if (name != "." && name != "..") all.emplace_back(name, entry);
    return true;
  }));
  return all;
}

// Looks at `dir` as a checkpoint, and as a directory of checkpoints.
void Checkpoints::scan(Ino dir) {
  found_busy_ = false;
  const auto st = tree_.stat(dir);
  const auto path = tree_.places().path(dir);
  if (!st.ok() || !path.ok()) return;  // it was removed
  if (const auto above = tree_.places().parent(dir); dir != kNewIno && above.ok())
    if (const auto training = open_training(*above))
      consider(*training, {dir, *st}, path->substr(path->rfind('/') + 1));
  const auto training = open_training(dir);
  if (!training) return;
  for (const auto& [name, entry] : entries_of(dir)) consider(*training, entry, name);
}

std::optional<Checkpoints::Training> Checkpoints::open_training(Ino dir) {
  auto fd = tree_.is_shared(dir) ? Error{Errc::invalid, "a namespace"} : tree_.open_to_list(dir);
  if (!fd.ok()) return std::nullopt;
  const auto st = stat_at(fd->get(), kDraftFactsFile);
  if (!st.ok()) return std::nullopt;
  const bool was_written = is_written(fd->get());
  auto facts = read_draft_facts(fd->get());
  if (!facts.ok() && (was_written || is_written(fd->get()))) {
    scan_again(dir, st->st_uid, kBusyAgain);
    return std::nullopt;
  }
  if (!facts.ok()) {
    refused_.insert(dir);
    refuse(fd->get(), facts.error());
    return std::nullopt;
  }
  if (refused_.erase(dir) != 0) static_cast<void>(remove_at(fd->get(), kDraftErrorFile));
  if (!*facts || !(*facts)->each) return std::nullopt;
  return Training{dir, std::move(*(*facts)->each), st->st_uid};
}

// Returns the mtime of the file that a program writes last, if the checkpoint has it and no version of that time.
std::optional<std::uint64_t> Checkpoints::complete_since(const Training& training, int checkpoint) {
  const auto last = stat_at(checkpoint, training.each.when);
  if (!last.ok() || !S_ISREG(last->st_mode)) return std::nullopt;
  const std::uint64_t written_ns = nanoseconds(last->st_mtim);
  const auto published = stat_at(checkpoint, kDraftPublishedFile);
  if (published.ok() && nanoseconds(published->st_mtim) == written_ns) return std::nullopt;
  return written_ns;
}

// A user's .weft.json must not publish what belongs to another user.
void Checkpoints::consider(const Training& training, const DraftFound& checkpoint, const std::string& name) {
  if (!S_ISDIR(checkpoint.st.st_mode) || checkpoint.st.st_uid != training.owner) return;
  if (!matches(training.each.pattern, name)) return;
  const auto fd = tree_.open_to_list(checkpoint.ino);
  const auto now = fd.ok() ? stat_fd(fd->get(), name) : Result<struct stat>(fd.error());
  if (!now.ok() || now->st_uid != training.owner) return;  // the number belongs to another directory by now
  if (const auto written_ns = complete_since(training, fd->get())) take(training, checkpoint, fd->get(), *written_ns);
}

void Checkpoints::take(const Training& training, const DraftFound& checkpoint, int fd, std::uint64_t written_ns) {
  Job job;
  job.order.user = with_groups(checkpoint.st.st_uid, checkpoint.st.st_gid);
  job.order.dir = training.ino;
  job.order.model = training.each.model;
  job.order.stays = {checkpoint.ino, written_ns};
  const Status taken = publisher_.take_staying(job.order, job.folder, !found_busy_);
  if (taken.ok()) return add(std::move(job));
  const Errc code = taken.error().code;
  found_busy_ = found_busy_ || code == Errc::busy;
  if (code == Errc::busy) scan_again(checkpoint.ino, training.owner, kBusyAgain);
  if (code == Errc::permission) refuse(fd, Error{Errc::permission, "a directory in it is another user's"});
  if (may_pass(taken)) scan_again(checkpoint.ino, training.owner, kFailedAgain);
}

}  // namespace weft

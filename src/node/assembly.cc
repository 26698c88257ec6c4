#include "node/assembly.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sha256.h"
#include "node/fill.h"
#include "node/open_file.h"

namespace weft {
namespace {

// A reader of a header or of one tensor is not worth the work: so much of a file has to be read first.
constexpr std::uint64_t kWantedShare = 8;  // an eighth
constexpr std::uint64_t kWantedBytesMax = 64U << 20U;
constexpr auto kReaderFirst = std::chrono::seconds(5);  // so long the one who has it open reads undisturbed
// What could not be made is not tried again for a while.
constexpr auto kRetryAfter = std::chrono::seconds(2);
constexpr auto kBusyPause = std::chrono::milliseconds(50);
constexpr std::uint64_t kAnyBytes = UINT64_MAX;
constexpr int kNiceness = 19;
constexpr int kIoWhoThread = 1;           // IOPRIO_WHO_PROCESS of 0: this thread
constexpr int kIoLowest = (2 << 13) | 7;  // IOPRIO_CLASS_BE, its last level; idle might wait for ever

void lower_priority() {
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness));
  static_cast<void>(::syscall(SYS_ioprio_set, kIoWhoThread, 0, kIoLowest));
}

void add_number(Sha256& hash, std::uint64_t number) {
  std::byte bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
  hash.update(bytes);
}

// Of sharing blocks: packs on another file system, or blocks with rules of their own.
bool is_odd(Errc code) {
  return code == Errc::invalid || code == Errc::unsupported || code == Errc::io;
}

class AssembledFile final : public OpenFile {
 public:
  AssembledFile(Fd fd, std::uint64_t size, std::string where)
      : fd_(std::move(fd)), size_(size), where_(std::move(where)) {}
  ~AssembledFile() override { note_use(fd_.get()); }  // used until now
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= size_ || out.empty()) return std::size_t{0};
    return read_some(fd_.get(), offset, out, where_);
  }
  int backing_fd() const override { return fd_.get(); }

 private:
  Fd fd_;
  std::uint64_t size_;
  std::string where_;
};

// Counts what is read of a composed file, and asks once for its assembly: when its reader is done with it, so that they
// need not share processors and disk, or goes on for long.
class WatchedFile final : public OpenFile {
 public:
  WatchedFile(std::shared_ptr<OpenFile> file, std::uint64_t wanted_after, std::function<void()> want)
      : file_(std::move(file)), wanted_after_(wanted_after), want_(std::move(want)) {}
  ~WatchedFile() override {
    if (read_.load(std::memory_order_relaxed) >= wanted_after_) ask();
  }
  std::uint64_t size() const override { return file_->size(); }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    auto got = file_->read(offset, out);
    if (got.ok()) count(*got);
    return got;
  }
  Result<MemoryParts> in_memory(std::uint64_t offset, std::size_t count_max) override {
    WEFT_TRY(MemoryParts parts, file_->in_memory(offset, count_max));
    std::size_t bytes = 0;
    for (const auto part : parts) bytes += part.size();
    count(bytes);
    return parts;
  }
  bool better_in_memory() const override { return file_->better_in_memory(); }
  int backing_fd() const override { return file_->backing_fd(); }
  void opened() override { file_->opened(); }

 private:
  void count(std::size_t bytes) {
    const std::uint64_t read = read_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (read >= size() || (read >= wanted_after_ && std::chrono::steady_clock::now() - opened_ >= kReaderFirst)) ask();
  }
  void ask() {
    if (!asked_.exchange(true, std::memory_order_relaxed)) want_();
  }

  const std::shared_ptr<OpenFile> file_;
  const std::uint64_t wanted_after_;
  const std::function<void()> want_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> read_{0};
  std::atomic<bool> asked_{false};
};

}  // namespace

AssembledSource assembled_source(const File& file, std::string where) {
  AssembledSource source;
  source.size = file.size;
  source.where = std::move(where);
  source.blobs.reserve(file.extents.size());
  Sha256 hash;
  hash.update(std::as_bytes(std::span("weft-assembled-2", 16)));
  for (const Extent& extent : file.extents) {
    source.blobs.push_back(extent.id);
    add_number(hash, extent.id.length);
    hash.update(std::as_bytes(std::span(extent.id.root.bytes)));
  }
  source.key = hash.finish();
  return source;
}

Status assemble_now(Store& store, const AssembledDir& dir, const AssembledSource& source, std::uint64_t block_bytes,
                    std::uint64_t copied_bytes_max, const std::function<bool()>& cancelled, AssemblyCounts& counts) {
  if (dir.has(source.key)) return Error{Errc::exists, fmt::format("{}: assembled already", source.where)};
  WEFT_TRY(const auto places, lock_blobs(store, source.blobs));
  const std::vector<FillRun> runs = runs_of(source.blobs, places);
  const auto assemble_by = [&](const FillPlan& plan) -> Status {
    WEFT_TRY(AssembledPart part, dir.begin(source.key, source.size, plan.copied_bytes));
    WEFT_CHECK(fill(part.fd(), plan, source.where, cancelled));
    return dir.finish(std::move(part));
  };
  FillPlan plan = plan_fill(runs, block_bytes);
  const Error dear{Errc::unsupported, fmt::format("{}: its blocks cannot be shared", source.where)};
  if (plan.copied_bytes > copied_bytes_max) return dear;
  Status made = assemble_by(plan);
  if (!made.ok() && !plan.clones.empty() && is_odd(made.error().code)) {
    plan = plan_fill(runs, 0);
    if (plan.copied_bytes > copied_bytes_max) return dear;
    made = assemble_by(plan);
  }
  WEFT_CHECK(made);
  ++counts.made;
  counts.copied_bytes += plan.copied_bytes;
  counts.cloned_bytes += plan.size - plan.copied_bytes;
  return {};
}

Assembly::Assembly(Store& store, AssembledDir dir, std::function<void(Ino)> tell)
    : store_(store),
      dir_(std::move(dir)),
      tell_(std::move(tell)),
      block_bytes_(sharing_block_bytes(dir_.path())),
      thread_([this] { run(); }) {}

void Assembly::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  const std::lock_guard ending(ending_);
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<OpenFile> Assembly::open(const AssembledSource& source) {
  auto fd = dir_.find(source.key, source.size);
  if (!fd.ok()) return nullptr;
  opened_.fetch_add(1, std::memory_order_relaxed);
  return std::make_shared<AssembledFile>(std::move(fd).value(), source.size, source.where);
}

std::shared_ptr<OpenFile> Assembly::watch(const std::shared_ptr<Assembly>& assembly, std::shared_ptr<OpenFile> composed,
                                          std::shared_ptr<const AssembledSource> source, Ino ino) {
  if (assembly->block_bytes_ != 0) assembly->want(source, ino);  // blocks are shared in no time
  const std::uint64_t wanted_after = std::min(source->size / kWantedShare, kWantedBytesMax);
  return std::make_shared<WatchedFile>(std::move(composed), wanted_after,
                                       [assembly, source = std::move(source), ino] { assembly->want(source, ino); });
}

bool Assembly::recently_failed(const Digest& key) {
  const auto found = failed_.find(key);
  if (found == failed_.end()) return false;
  if (std::chrono::steady_clock::now() - found->second < kRetryAfter) return true;
  failed_.erase(found);
  return false;
}

void Assembly::want(std::shared_ptr<const AssembledSource> source, Ino ino) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || recently_failed(source->key)) return;
    const auto known =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return job.source->key == source->key; });
    if (active_ == source->key)
      active_inos_.insert(ino);
    else if (known != jobs_.end())
      known->inos.insert(ino);
    else
      jobs_.push_back({std::move(source), {ino}});
  }
  wake_.notify_one();
}

// Waits for one; nothing at the end.
std::optional<Assembly::Job> Assembly::next() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
  if (stop_) return {};
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  active_ = job.source->key;
  return job;
}

void Assembly::attempt(Job job) {
  AssemblyCounts counts;
  const auto cancelled = [this] { return stop_.load(std::memory_order_relaxed); };
  const Status made = assemble_now(store_, dir_, *job.source, block_bytes_, kAnyBytes, cancelled, counts);
  {
    const std::lock_guard lock(mutex_);
    counts_.made += counts.made;
    counts_.cloned_bytes += counts.cloned_bytes;
    counts_.copied_bytes += counts.copied_bytes;
  }
  settle(std::move(job), made);
}

void Assembly::settle(Job job, const Status& made) {
  const bool there = made.ok() || made.error().code == Errc::exists;
  {
    std::unique_lock lock(mutex_);
    active_.reset();
    job.inos.merge(active_inos_);
    active_inos_.clear();
    if (stop_) return;
    if (!there && made.error().code == Errc::busy) {  // another process makes it
      jobs_.push_back(std::move(job));
      wake_.wait_for(lock, kBusyPause, [this] { return stop_.load(); });
      return;
    }
    if (!there) {
      failed_[job.source->key] = std::chrono::steady_clock::now();
      ++given_up_;
      last_problem_ = made.error().message;
    }
  }
  if (!there) return log_info("not assembled: {}", made.error().message);
  for (const Ino ino : job.inos) tell_(ino);
}

void Assembly::run() {
  lower_priority();
  while (!stop_)
    if (auto job = next()) attempt(std::move(*job));
}

void Assembly::write_status(JsonWriter& json) const {
  const AssembledUsage usage = dir_.usage();
  json.member("files", usage.files).member("bytes", usage.bytes).member("pinned_files", usage.pinned_files);
  json.member("bytes_max", usage.bytes_max).member("shares_blocks", block_bytes_ != 0);
  json.member("opened", opened_.load(std::memory_order_relaxed)).member("evicted", dir_.evicted());
  const std::lock_guard lock(mutex_);
  json.member("made", counts_.made).member("cloned_bytes", counts_.cloned_bytes);
  json.member("copied_bytes", counts_.copied_bytes);
  json.member("waiting", static_cast<std::uint64_t>(jobs_.size() + (active_ ? 1 : 0)));
  json.member("given_up", given_up_);
  if (!last_problem_.empty()) json.member("last_problem", last_problem_);
}

}  // namespace weft

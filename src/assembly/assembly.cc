#include "assembly/assembly.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "assembly/fill.h"
#include "base/log.h"
#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "packs/blob_check.h"

namespace weft {
namespace {

// Share of a file that must be read before the file is assembled. A read of a header or of one tensor is not worth it.
constexpr std::uint64_t kWantedShare = 8;  // an eighth
constexpr std::uint64_t kWantedBytesMax = 64U << 20U;
constexpr auto kReaderFirst = std::chrono::seconds(5);  // time that a reader of the file is undisturbed
constexpr std::size_t kReadFilesMax = 65'536;           // files of which the mount knows that they were read
// Pause after a failed attempt.
constexpr auto kRetryAfter = std::chrono::seconds(2);
constexpr auto kBusyPause = std::chrono::milliseconds(50);
constexpr std::uint64_t kAnyBytes = UINT64_MAX;
constexpr int kNiceness = 19;
constexpr int kIoWhoThread = 1;           // IOPRIO_WHO_PROCESS; id 0 is this thread
constexpr int kIoLowest = (2 << 13) | 7;  // IOPRIO_CLASS_BE, lowest level; the idle class could wait for ever

void lower_priority() {
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness));
  static_cast<void>(::syscall(SYS_ioprio_set, kIoWhoThread, 0, kIoLowest));
}

void add_number(Sha256& hash, std::uint64_t number) {
  std::byte bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
  hash.update(bytes);
}

// True for errors of block sharing that a copy avoids: packs on another file system, or restrictions of the file
// system.
bool is_odd(Errc code) {
  return code == Errc::invalid || code == Errc::unsupported || code == Errc::io;
}

// Counts the bytes read of a composed file. Reports once that an eighth of it was read, and requests its assembly once:
// when the file is closed after enough reads, when it is read for long, or when all of it was read. So the reader and
// the assembly rarely compete for processors and the disk.
class WatchedFile final : public OpenFile {
 public:
  struct Watch {
    std::uint64_t read_after = 0;    // bytes read, after which `read` is called
    std::uint64_t wanted_after = 0;  // bytes read, after which the assembly is worth it
    std::uint64_t whole_after = 0;   // bytes read, after which it need not wait for the reader
    std::function<void()> read = {};
    std::function<void()> want = {};
  };
  WatchedFile(std::shared_ptr<OpenFile> file, Watch watch) : file_(std::move(file)), watch_(std::move(watch)) {}
  ~WatchedFile() override {
    if (read_.load(std::memory_order_relaxed) >= watch_.wanted_after) ask();
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
  void opened() override {
    if (read_.load(std::memory_order_relaxed) >= watch_.read_after) ask();  // it is opened again
    file_->opened();
  }

 private:
  void count(std::size_t bytes) {
    const std::uint64_t before = read_.fetch_add(bytes, std::memory_order_relaxed), read = before + bytes;
    if (before < watch_.read_after && read >= watch_.read_after) watch_.read();
    if (read < watch_.wanted_after) return;
    if (read >= watch_.whole_after || std::chrono::steady_clock::now() - opened_ >= kReaderFirst) ask();
  }
  void ask() {
    if (!asked_.exchange(true, std::memory_order_relaxed)) watch_.want();
  }

  const std::shared_ptr<OpenFile> file_;
  const Watch watch_;
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
  const Digest key = hash.finish();
  for (unsigned i = 0; i < sizeof source.id; ++i) source.id = source.id << 8U | static_cast<PackId>(key.bytes[i]);
  return source;
}

namespace {

// Returns the entries of the file's blobs from the .toc files of the runs' packs, each with the blob's offset in the
// file.
Result<std::vector<PackEntry>> entries_of(Store& store, const AssembledSource& source, std::span<const Run> runs) {
  std::map<PackId, PackToc> tocs;
  std::vector<PackEntry> entries;
  std::uint64_t offset = 0;
  auto run = runs.begin();
  for (const ContentId& blob : source.blobs) {
    if (offset == run->offset + run->length) ++run;
    const PackId pack = run->place.pack->id();
    if (!tocs.contains(pack)) {
      WEFT_TRY(tocs[pack], read_toc_of(store.directory(), pack));
    }
    const PackEntry* listed = find_entry(tocs[pack], blob, run->place.offset + (offset - run->offset));
    if (listed == nullptr)
      return Error{Errc::corrupt, fmt::format("{}: pack {} does not list its bytes", source.where, pack_name(pack))};
    entries.push_back(*listed);
    entries.back().offset = offset;
    offset += blob.length;
  }
  return entries;
}

// Makes one assembled file.
Status make(AssembledPacks& packs, const AssembledSource& source, const std::vector<PackEntry>& entries,
            const FillPlan& plan, const std::function<bool()>& cancelled) {
  WEFT_TRY(AssembledPart part, packs.begin(source, plan.copied_bytes));
  WEFT_CHECK(fill(part.writer->fd(), plan, source.where, cancelled));
  // Shared blocks are those of the packs. If a large part of the file is copied, its new bytes are verified.
  if (plan.copied_bytes > plan.size / kCopiedShare)
    for (const PackEntry& entry : entries)
      WEFT_CHECK(check_blob(part.writer->fd(), source.where, entry, SilentProgress(cancelled)));
  return packs.finish(std::move(part), entries);
}

}  // namespace

Status assemble_now(Store& store, AssembledPacks& packs, const AssembledSource& source, std::uint64_t block_bytes,
                    std::uint64_t copied_bytes_max, const std::function<bool()>& cancelled, AssemblyCounts& counts) {
  Status there = packs.verify(source, SilentProgress(cancelled));
  if (there.ok()) return Error{Errc::exists, fmt::format("{}: assembled already", source.where)};
  if (there.error().code == Errc::cancelled) return there;
  WEFT_TRY(const auto runs, open_runs(store, source.blobs, 0, {}));
  WEFT_TRY(const auto entries, entries_of(store, source, runs));
  FillPlan plan = plan_fill(runs, block_bytes);
  const Error unshared{Errc::unsupported, fmt::format("{}: its blocks cannot be shared", source.where)};
  if (plan.copied_bytes > copied_bytes_max) return unshared;
  Status made = make(packs, source, entries, plan, cancelled);
  if (!made.ok() && !plan.clones.empty() && is_odd(made.error().code)) {
    plan = plan_fill(runs, 0);
    if (plan.copied_bytes > copied_bytes_max) return unshared;
    made = make(packs, source, entries, plan, cancelled);
  }
  WEFT_CHECK(made);
  ++counts.made;
  counts.copied_bytes += plan.copied_bytes;
  counts.cloned_bytes += plan.size - plan.copied_bytes;
  return {};
}

Status assemble_of(Store& store, AssembledPacks& packs, const AssembledSource& source, int fd, Take take) {
  WEFT_TRY(const auto runs, open_runs(store, source.blobs, 0, {}));
  WEFT_TRY(auto entries, entries_of(store, source, runs));
  WEFT_TRY(AssembledPart part, packs.begin_with(source, fd, take));
  return packs.finish(std::move(part), std::move(entries));
}

Assembly::Assembly(Store& store, std::unique_ptr<AssembledPacks> packs, std::function<void(Ino)> tell)
    : store_(store), packs_(std::move(packs)), tell_(std::move(tell)), writable_(packs_->writable()), thread_([this] {
        run();
      }) {}

void Assembly::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  const std::lock_guard ending(ending_);
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<OpenFile> Assembly::open(const AssembledSource& source, const ReadAhead& ahead) {
  auto found = packs_->find(source);
  if (!found.ok() || !found->verified) return nullptr;
  touch_file(found->pack->fd());  // only the order of eviction depends on this time
  opened_.fetch_add(1, std::memory_order_relaxed);
  return open_pack(source.where, std::move(found->pack), ahead);
}

std::shared_ptr<OpenFile> Assembly::watch(const std::shared_ptr<Assembly>& assembly, std::shared_ptr<OpenFile> composed,
                                          std::shared_ptr<const AssembledSource> source, Ino ino) {
  const bool there = assembly->packs_->find(*source).ok();
  if (!there && !assembly->writable_) return composed;
  const bool costs_space = !there && assembly->block_bytes() == 0;
  if (!there && !costs_space) assembly->want(source, ino);  // sharing blocks takes almost no time
  const std::uint64_t enough = std::min(source->size / kWantedShare, kWantedBytesMax);
  WatchedFile::Watch watch{.read_after = enough, .wanted_after = enough, .whole_after = source->size};
  if (costs_space && assembly->was_read(source->id)) {
    watch.wanted_after = 0;  // the page cache may have the bytes: then the server sees no read
  } else if (costs_space) {
    // A program that reads the file once gains nothing from a copy. One that reads it again has mapped it, and the page
    // cache does not keep its pages.
    watch.wanted_after += source->size;
    watch.whole_after = 2 * source->size;
  }
  watch.read = [assembly, file = source->id] { assembly->note_read(file); };
  watch.want = [assembly, source = std::move(source), ino] { assembly->want(source, ino); };
  return std::make_shared<WatchedFile>(std::move(composed), std::move(watch));
}

void Assembly::note_read(PackId file) {
  const std::lock_guard lock(mutex_);
  if (read_.size() >= kReadFilesMax) read_.clear();
  read_.insert(file);
}

bool Assembly::was_read(PackId file) const {
  const std::lock_guard lock(mutex_);
  return read_.contains(file);
}

bool Assembly::recently_failed(PackId file) {
  const auto found = failed_.find(file);
  if (found == failed_.end()) return false;
  if (std::chrono::steady_clock::now() - found->second < kRetryAfter) return true;
  failed_.erase(found);
  return false;
}

void Assembly::want(std::shared_ptr<const AssembledSource> source, Ino ino) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || recently_failed(source->id)) return;
    const auto known =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return job.source->id == source->id; });
    if (active_ == source->id)
      active_inos_.insert(ino);
    else if (known != jobs_.end())
      known->inos.insert(ino);
    else
      jobs_.push_back({std::move(source), {ino}});
  }
  wake_.notify_one();
}

// Waits for a job. Returns nothing after stop().
std::optional<Assembly::Job> Assembly::next() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
  if (stop_) return {};
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  active_ = job.source->id;
  return job;
}

void Assembly::attempt(Job job) {
  AssemblyCounts counts;
  const auto cancelled = [this] { return stop_.load(std::memory_order_relaxed); };
  const Status made = assemble_now(store_, *packs_, *job.source, block_bytes(), kAnyBytes, cancelled, counts);
  {
    const std::lock_guard lock(mutex_);
    counts_.made += counts.made;
    counts_.cloned_bytes += counts.cloned_bytes;
    counts_.copied_bytes += counts.copied_bytes;
  }
  record_outcome(std::move(job), made);
}

void Assembly::record_outcome(Job job, const Status& made) {
  const bool there = made.ok() || made.error().code == Errc::exists;
  {
    std::unique_lock lock(mutex_);
    active_.reset();
    job.inos.merge(active_inos_);
    active_inos_.clear();
    if (stop_) return;
    if (!there && made.error().code == Errc::busy) {  // another process is making it
      jobs_.push_back(std::move(job));
      wake_.wait_for(lock, kBusyPause, [this] { return stop_.load(); });
      return;
    }
    if (!there) {
      failed_[job.source->id] = std::chrono::steady_clock::now();
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
  const AssembledUsage usage = packs_->usage();
  json.member("files", usage.files).member("bytes", usage.bytes).member("pinned_files", usage.pinned_files);
  json.member("bytes_max", usage.bytes_max).member("shares_blocks", block_bytes() != 0);
  json.member("opened", opened_.load(std::memory_order_relaxed)).member("evicted", packs_->evicted());
  json.member("damaged", packs_->damaged()).member("writable", writable_);
  const std::lock_guard lock(mutex_);
  json.member("made", counts_.made).member("cloned_bytes", counts_.cloned_bytes);
  json.member("copied_bytes", counts_.copied_bytes);
  json.member("waiting", static_cast<std::uint64_t>(jobs_.size() + (active_ ? 1 : 0)));
  json.member("given_up", given_up_);
  if (!last_problem_.empty()) json.member("last_problem", last_problem_);
}

}  // namespace weft

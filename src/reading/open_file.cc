#include "reading/open_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "os/page_cache.h"
#include "os/sys.h"
#include "reading/memory_parts.h"
#include "reading/reads_in_a_row.h"

namespace weft {
namespace {

// Read-ahead for files of which readers often want a part only, such as files of one tensor. Brings the requested bytes
// of one open file into the page cache, so that a request is answered from memory. Any thread.
class ReadOn {
 public:
  static constexpr std::uint64_t kSizeMin = 16U << 20U;  // smaller files are not read ahead

  // `prefetcher` and `runs` outlive this object.
  ReadOn(Prefetcher& prefetcher, const std::vector<Run>& runs) : prefetcher_(prefetcher), runs_(runs) {}

  // Reports a request for [offset, offset + length) of the file. Returns true if its reader reads sequentially.
  bool told(std::uint64_t offset, std::uint64_t length);
  // Brings in [within, within + length) of a run that is not all in memory. For a sequential reader, brings in the
  // bytes ahead too. Best effort.
  void bring(const Run& run, std::uint64_t within, std::uint64_t length, bool reads_on);
  // True if parts of the file may be cached as large pages, on which read(2) would read far ahead.
  bool in_large_pages() const { return live_.load(std::memory_order_relaxed) != nullptr; }

 private:
  void begin(std::uint64_t offset, std::uint64_t length);

  Prefetcher& prefetcher_;
  const std::vector<Run>& runs_;
  ReadsInARow reads_;
  std::atomic<bool> blind_ = false;  // the kernel does not report which pages are cached
  std::once_flag begun_;
  std::atomic<Prefetcher::Watch*> live_ = nullptr;  // watch_, once it exists
  std::unique_ptr<Prefetcher::Watch> watch_;
};

// A reader is sequential after so many bytes: more than the kernel reads around a fault in a mapping (the mount's
// readahead, 4 MiB).
constexpr std::uint64_t kRowMin = 8U << 20U;

// Returns the runs of an open file as pieces for a PrefetchSubject.
std::vector<FilePiece> pieces_of(const std::vector<Run>& runs) {
  std::vector<FilePiece> pieces;
  for (const Run& run : runs) pieces.push_back({run.offset, run.length, run.place.pack->fd(), run.place.offset});
  return pieces;
}

bool ReadOn::told(std::uint64_t offset, std::uint64_t length) {
  if (reads_.note(offset, length) < kRowMin) return false;
  if (Prefetcher::Watch* const watch = live_.load(std::memory_order_acquire)) watch->told(offset, length);
  return true;
}

// Brings in large pages within the run only. The kernel puts readahead marks on large pages: read(2) on a marked page
// reads ahead past the run. So the whole request is brought in, and the caller needs no read(2).
void ReadOn::bring(const Run& run, std::uint64_t within, std::uint64_t length, bool reads_on) {
  const int fd = run.place.pack->fd();
  const std::uint64_t run_end = run.place.offset + run.length;
  const std::uint64_t at = run.place.offset + within;
  if (blind_.load(std::memory_order_relaxed) || all_cached(fd, at, length)) return;
  if (reads_on) {
    begin(run.offset + within, length);
    for (std::uint64_t page = at / kLargePage * kLargePage; page < at + length; page += kLargePage)
      if (page >= run.place.offset && page + kLargePage <= run_end) bring_in(fd, page, kLargePage);
    if (all_cached(fd, at, length)) return;
  }
  start_reading(fd, at, length);
  if (!all_cached(fd, at, length)) blind_.store(true, std::memory_order_relaxed);
}

// Reports this read to the new watch, because told() had none yet.
void ReadOn::begin(std::uint64_t offset, std::uint64_t length) {
  std::call_once(begun_, [&] {
    watch_ = prefetcher_.watch({pieces_of(runs_), {}, true});
    watch_->told(offset, length);
    live_.store(watch_.get(), std::memory_order_release);
  });
}

class BlobFile final : public OpenFile {
 public:
  BlobFile(std::string where, std::string head, std::vector<Run> runs)
      : where_(std::move(where)),
        head_(std::move(head)),
        size_(runs.empty() ? head_.size() : runs.back().offset + runs.back().length),
        runs_(std::move(runs)) {
    for (const Run& run : runs_) read_exactly_from_now_on(run.place.pack->fd());
  }

  void read_ahead(const ReadAhead& ahead);  // call it before the file is used

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override;
  Result<MemoryParts> in_memory(std::uint64_t offset, std::size_t count) override;
  bool better_in_memory() const override { return read_on_ && read_on_->in_large_pages(); }
  int backing_fd() const override;
  std::optional<LocalPlace> place_of(Range range) const override;
  void opened() override {
    if (prefetch_) prefetch_->begin();
  }

 private:
  std::string where_;
  std::string head_;
  const std::uint64_t size_;
  const std::vector<Run> runs_;                  // in order, touching, from head_.size() to size_
  std::unique_ptr<Prefetcher::Watch> prefetch_;  // last, as is read_on_: both use the packs' descriptors
  std::unique_ptr<ReadOn> read_on_;
};

void BlobFile::read_ahead(const ReadAhead& ahead) {
  if (ahead.prefetcher == nullptr) return;
  if (ahead.one_tensor && size_ >= ReadOn::kSizeMin) read_on_ = std::make_unique<ReadOn>(*ahead.prefetcher, runs_);
  if (ahead.borders.empty()) return;
  prefetch_ = ahead.prefetcher->watch({pieces_of(runs_), ahead.borders, backing_fd() < 0});
}

Result<std::size_t> BlobFile::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset >= size_ || out.empty()) return std::size_t{0};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - offset));
  if (prefetch_) prefetch_->told(offset, count);
  WEFT_CHECK(read_runs(head_, runs_, offset, out.first(count),
                       [this](const Run& run, std::uint64_t within, std::span<std::byte> part) {
                         return read_exact(run.place.pack->fd(), run.place.offset + within, part, where_);
                       }));
  return count;
}

Result<MemoryParts> BlobFile::in_memory(std::uint64_t offset, std::size_t count) {
  if (offset >= size_) return MemoryParts();
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, size_ - offset));
  const bool reads_on = read_on_ && read_on_->told(offset, count);
  const auto add = [this, reads_on](MemoryParts& out, const Run& run, std::uint64_t within, std::size_t length) {
    const auto add_now = [&] { return add_present(out, *run.place.pack, run.place.offset + within, length); };
    Status added = add_now();
    if (added.ok() || !read_on_) return added;
    read_on_->bring(run, within, length, reads_on);
    return add_now();
  };
  WEFT_TRY(MemoryParts parts, memory_parts(head_, runs_, offset, count, add));
  if (prefetch_ && !parts.empty()) prefetch_->told(offset, count);
  return parts;
}

int BlobFile::backing_fd() const {
  if (!head_.empty() || runs_.size() != 1) return -1;
  const Run& run = runs_.front();
  return run.place.offset == 0 && run.place.pack->size() == size_ ? run.place.pack->fd() : -1;
}

std::optional<LocalPlace> BlobFile::place_of(Range range) const {
  const auto behind = std::ranges::upper_bound(runs_, range.offset, {}, &Run::offset);
  if (behind == runs_.begin()) return std::nullopt;
  const Run& run = *std::prev(behind);
  const std::uint64_t within = range.offset - run.offset;
  if (within > run.length || range.length > run.length - within) return std::nullopt;
  return LocalPlace{run.place.pack->fd(), run.place.offset + within};
}

class TextFile final : public OpenFile {
 public:
  TextFile(std::string text, ReadMode mode) : text_(std::move(text)), mode_(mode) {}
  std::uint64_t size() const override { return text_.size(); }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= text_.size() || out.empty()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(out.size(), text_.size() - offset);
    std::memcpy(out.data(), text_.data() + offset, count);
    return count;
  }
  int backing_fd() const override { return -1; }
  ReadMode mode() const override { return mode_; }

 private:
  std::string text_;
  ReadMode mode_;
};

}  // namespace

Result<std::shared_ptr<OpenFile>> open_blobs(Store& store, std::string where, std::string head,
                                             std::span<const ContentId> blobs, const ReadAhead& ahead,
                                             Remembered known) {
  auto runs = open_runs(store, blobs, head.size(), known);
  if (!runs.ok()) return error_at(where, std::move(runs).error());
  auto file = std::make_shared<BlobFile>(std::move(where), std::move(head), std::move(runs).value());
  file->read_ahead(ahead);
  return std::shared_ptr<OpenFile>(std::move(file));
}

std::shared_ptr<OpenFile> open_pack(std::string where, std::shared_ptr<const PackReader> pack, const ReadAhead& ahead) {
  std::vector<Run> runs;
  const std::uint64_t size = pack->size();
  runs.push_back({0, size, {std::move(pack), 0}});
  auto file = std::make_shared<BlobFile>(std::move(where), "", std::move(runs));
  file->read_ahead(ahead);
  return file;
}

std::shared_ptr<OpenFile> open_text(std::string text, ReadMode mode) {
  return std::make_shared<TextFile>(std::move(text), mode);
}

}  // namespace weft

#include "reading/open_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "os/page_cache.h"
#include "os/sys.h"
#include "reading/memory_parts.h"
#include "reading/read_on.h"

namespace weft {
namespace {

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
  if (!runs.ok()) return Error{runs.error().code, fmt::format("{}: {}", where, runs.error().message)};
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

#include "reading/record_file.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "os/direct_read.h"
#include "os/page_cache.h"
#include "reading/record_pages.h"

namespace weft {
namespace {

// Reads the file for a scanner; fails once the file is closed.
class ScannedFile final : public ByteSource {
 public:
  ScannedFile(OpenFile& file, const std::atomic<bool>& closing) : file_(file), closing_(closing) {}
  std::uint64_t size() const override { return file_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    if (closing_) return Error{Errc::cancelled, "the file was closed"};
    WEFT_TRY(const std::size_t got, file_.read(offset, out));
    return got == out.size() ? Status{} : Status(Error{Errc::invalid, "the file ended"});
  }

 private:
  OpenFile& file_;
  const std::atomic<bool>& closing_;
};

class RecordFile final : public OpenFile {
 public:
  RecordFile(std::shared_ptr<OpenFile> file, std::optional<RecordRows> rows)
      : file_(std::move(file)), direct_(open_direct(file_->backing_fd())) {
    if (!rows) return;
    pages_ = RecordPages::of(*std::move(rows));
    ready_ = &pages_;
  }
  ~RecordFile() override {
    closing_ = true;
    if (scan_.joinable()) scan_.join();
  }

  std::uint64_t size() const override { return file_->size(); }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override { return file_->read(offset, out); }
  Result<MemoryParts> in_memory(std::uint64_t offset, std::size_t count) override {
    return file_->in_memory(offset, count);
  }
  bool better_in_memory() const override { return file_->better_in_memory(); }
  int backing_fd() const override { return -1; }

  void opened() override { file_->opened(); }

  std::optional<Range> record_at(std::uint64_t offset) override {
    const RecordPages* pages = ready_.load(std::memory_order_acquire);
    if (pages == nullptr) {
      std::call_once(begun_, [this] { begin(); });
      pages = awaited();
    }
    return pages == nullptr ? std::nullopt : pages->around(offset);
  }

  // Reads past the page cache of the backing file: each page is cached once, as a page of this file.
  Result<std::size_t> read_record(std::uint64_t offset, std::span<std::byte> out) override {
    if (direct_.valid())
      if (const auto got = read_direct(direct_.get(), offset, out)) return *got;
    return file_->read(offset, out);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kScanAwaited{200};

  // Starts the scan at the first request for a record. A program that copies the file, or reads it in order, makes
  // none.
  void begin() {
    deadline_ = Clock::now() + kScanAwaited;
    scan_ = std::thread([this] {
      scan();
      const std::lock_guard lock(mutex_);
      scanned_ = true;
      done_.notify_all();
    });
  }

  const RecordPages* awaited() {
    std::unique_lock lock(mutex_);
    done_.wait_until(lock, deadline_, [this] { return scanned_; });
    return ready_.load(std::memory_order_acquire);
  }

  void scan() {
    ScannedFile source(*file_, closing_);
    auto pages = RecordPages::scan(*container_format("data.mdb", {}), source);
    if (!pages.ok()) {
      if (!closing_) log_info("an LMDB file is read without its records: {}", pages.error().message);
      return;
    }
    pages_ = *std::move(pages);
    ready_.store(&pages_, std::memory_order_release);
  }

  const std::shared_ptr<OpenFile> file_;
  const Fd direct_;
  std::atomic<bool> closing_{false};
  std::once_flag begun_;
  RecordPages pages_;
  std::atomic<const RecordPages*> ready_{nullptr};  // pages_, once it is filled
  std::mutex mutex_;
  std::condition_variable done_;
  bool scanned_ = false;        // guarded by mutex_
  Clock::time_point deadline_;  // until then readers wait for the scan; set once
  std::thread scan_;
};

}  // namespace

bool reads_by_record(const OpenFile& file) {
  const int fd = file.backing_fd();
  if (fd < 0 || file.size() < RecordPages::kPage) return false;
  const auto cached = cached_pages(fd, 0, file.size());
  return cached.ok() && *cached < file.size() / page_bytes() * 9 / 10;
}

std::shared_ptr<OpenFile> open_by_record(std::shared_ptr<OpenFile> file, std::optional<RecordRows> rows) {
  return std::make_shared<RecordFile>(std::move(file), std::move(rows));
}

}  // namespace weft

#include "assembly/fill.h"

#include <fcntl.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/core.h>

#include "os/entries.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

// Size and alignment of writes. The page cache then takes them in its largest folios: a mapping of single pages is many
// times slower than one of large folios.
constexpr std::uint64_t kChunk = 4U << 20U;
// Bytes between two starts of write-back: few enough that the sync at the end finds little to do.
constexpr std::uint64_t kWritebackEvery = 64U << 20U;
constexpr std::size_t kBufferAlign = 4096;

class Copier {
 public:
  Copier(int out, const FillPlan& plan, const std::string& where, const std::function<bool()>& cancelled)
      : out_(out),
        plan_(plan),
        where_(where),
        cancelled_(cancelled),
        buffer_(static_cast<std::byte*>(std::aligned_alloc(kBufferAlign, kChunk)), std::free) {}

  Status run() {
    if (!buffer_) return Error{Errc::io, fmt::format("{}: no memory to copy through", where_)};
    for (const Run& run : plan_.copies)
      for (std::uint64_t done = 0; done < run.length;) {
        const std::uint64_t at = run.offset + done;
        const std::uint64_t count = std::min(run.length - done, kChunk - at % kChunk);
        WEFT_CHECK(take(run, done, count));
        done += count;
      }
    return flush();
  }

 private:
  std::span<std::byte> buffer(std::uint64_t from, std::uint64_t count) { return {buffer_.get() + from, count}; }

  // Appends bytes of a run to the buffer, which holds the bytes [begin_, end_) of the file. They lie in one chunk.
  Status take(const Run& run, std::uint64_t done, std::uint64_t count) {
    const std::uint64_t at = run.offset + done;
    if (at != end_ || at % kChunk == 0) WEFT_CHECK(flush());
    if (begin_ == end_) begin_ = end_ = at;
    WEFT_CHECK(read_exact(run.place.pack->fd(), run.place.offset + done, buffer(at - begin_, count), where_));
    end_ = at + count;
    return {};
  }

  Status flush() {
    if (begin_ == end_) return {};
    if (cancelled_()) return Error{Errc::cancelled, fmt::format("{}: stopped", where_)};
    WEFT_CHECK(write_exact(out_, begin_, buffer(0, end_ - begin_), where_));
    written_ += end_ - begin_;
    begin_ = end_;
    if (written_ < kWritebackEvery) return {};
    start_writeback(out_, 0, 0);
    written_ = 0;
    return {};
  }

  int out_;
  const FillPlan& plan_;
  const std::string& where_;
  const std::function<bool()>& cancelled_;
  std::unique_ptr<std::byte, void (*)(void*)> buffer_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t written_ = 0;  // bytes since write-back was last started
};

// Shares the whole blocks of a run and copies its ends.
void add_run(FillPlan& plan, const Run& run, std::uint64_t block) {
  const auto copy = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    plan.copies.push_back(part_of(run, begin, end));
    plan.copied_bytes += end - begin;
  };
  const std::uint64_t end = end_of(run);
  const bool alike = block != 0 && run.offset % block == run.place.offset % block;
  const std::uint64_t first = alike ? (run.offset + block - 1) / block * block : end;
  const std::uint64_t last = alike ? end / block * block : end;
  if (first >= last) return copy(run.offset, end);
  copy(run.offset, first);
  plan.clones.push_back(part_of(run, first, last));
  copy(last, end);
}

// Makes a file share a block of another one, and returns the size of the block.
Result<std::uint64_t> shared_block(const SafePath& directory) {
  WEFT_TRY(const Fd held, open_directory(directory));
  const auto unnamed = [&] { return open_at(held.get(), ".", O_TMPFILE | O_RDWR, 0600); };
  WEFT_TRY(const Fd from, unnamed());
  WEFT_TRY(const Fd to, unnamed());
  struct statfs facts {};
  if (::fstatfs(from.get(), &facts) != 0) return std::uint64_t{0};
  const auto block = static_cast<std::uint64_t>(facts.f_bsize);
  if (block == 0 || block > kChunk || (block & (block - 1)) != 0) return std::uint64_t{0};
  const std::vector<std::byte> bytes(block);
  WEFT_CHECK(write_exact(from.get(), 0, bytes, directory));
  WEFT_CHECK(clone_range(from.get(), 0, block, to.get(), 0, directory));
  return block;
}

}  // namespace

FillPlan plan_fill(std::span<const Run> runs, std::uint64_t block_bytes) {
  FillPlan plan;
  for (const Run& run : runs) add_run(plan, run, block_bytes);
  if (!runs.empty()) plan.size = end_of(runs.back());
  return plan;
}

Result<std::uint64_t> sharing_block_bytes(const SafePath& directory) {
  auto block = shared_block(directory);
  const bool lacks = !block.ok() && (block.error().code == Errc::unsupported || block.error().code == Errc::invalid);
  return lacks ? Result<std::uint64_t>(0) : std::move(block);
}

Status fill(int out, const FillPlan& plan, const std::string& where, const std::function<bool()>& cancelled) {
  for (const Run& run : plan.clones) {
    if (cancelled()) return Error{Errc::cancelled, fmt::format("{}: stopped", where)};
    WEFT_CHECK(clone_range(run.place.pack->fd(), run.place.offset, run.length, out, run.offset, where));
  }
  WEFT_CHECK(Copier(out, plan, where, cancelled).run());
  if (plan.clones.empty() || plan.copies.empty()) return {};
  // Drop the pages: single pages between shared blocks would break up the read-ahead of everything after them.
  WEFT_CHECK(sync_file(out, where));
  drop_pages(out);
  return {};
}

}  // namespace weft

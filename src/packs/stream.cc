#include "packs/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kCompareStep = 128U << 10U;
constexpr std::size_t kCopyStep = 4U << 20U;

// The streaming of one extent. Its jobs write to this object, so the destructor waits for them.
class Passage {
 public:
  Passage(WindowRing& ring, Source& source, const StreamPlan& plan)
      : ring_(ring), source_(source), plan_(plan), chunks_(chunk_count(plan.range.length)) {}
  ~Passage() { static_cast<void>(ring_.wait_hashing()); }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  Result<Streamed> run() {
    for (std::uint64_t at = 0; at < plan_.range.length;) {
      WEFT_TRY(ImportWindow * window, take_window());
      WEFT_CHECK(read_slice(*window, at));
      at += std::min<std::uint64_t>(window->capacity(), plan_.range.length - at);
    }
    WEFT_CHECK(ring_.wait_hashing());
    const ContentId id{plan_.range.length, tree_root(plan_.range.length, chunks_)};
    // If the bytes are equal and the root is not, the stored bytes are damaged and so is the source.
    if (!spot_ && (differs_ || candidate_->id != id)) WEFT_CHECK(begin_writing());
    return Streamed{id, std::move(chunks_), hint_, head_, candidate_, spot_};
  }

 private:
  struct Slice {
    ImportWindow* window = nullptr;
    std::span<const std::byte> bytes;
    std::uint64_t at = 0;  // offset in the extent
  };

  // Returns the next window, whose old slice is overwritten. By then that slice equals the candidate's bytes, or
  // writing has begun.
  Result<ImportWindow*> take_window() {
    WEFT_TRY(ImportWindow * window, ring_.take());
    if (differs_ && !spot_) {
      WEFT_CHECK(begin_writing());
      WEFT_CHECK(window->writing.wait());
    }
    if (!waiting_.empty() && waiting_.front().window == window) {
      equal_ += waiting_.front().bytes.size();
      waiting_.pop_front();
    }
    return window;
  }

  // Reads one slice and starts jobs on each part as soon as it was read.
  Status read_slice(ImportWindow& window, std::uint64_t at) {
    const std::size_t size = std::min<std::uint64_t>(window.capacity(), plan_.range.length - at);
    const std::span<std::byte> slice = window.space().subspan(plan_.range.offset % kPackBlock, size);
    for (std::size_t filled = 0, hashed = 0; filled < size;) {
      std::span<std::byte> step = slice.subspan(filled, std::min(kReadStep, size - filled));
      WEFT_CHECK(source_.read(plan_.range.offset + at + filled, step));
      source_.feed_digest(step, window.plain);
      if (at + filled == 0) WEFT_CHECK(begin(step));
      if (!spot_) start_comparing(window, step, at + filled);
      filled += step.size();
      if (filled - hashed < hash_job_bytes() && filled < size) continue;
      start_hashing(window, slice.subspan(hashed, filled - hashed), at + hashed);
      hashed = filled;
    }
    const Slice done{&window, slice, at};
    spot_ ? write(done) : waiting_.push_back(done);
    return {};
  }

  Status begin(std::span<const std::byte> first) {
    hint_ = xxh3_64(first);
    head_ = head_of(first);
    WEFT_TRY(candidate_, plan_.find(hint_));
    return candidate_ ? Status{} : begin_writing();
  }

  Status begin_writing() {
    WEFT_TRY(spot_, plan_.spot());
    if (equal_ > 0 && !spot_->is_there) {
      WEFT_CHECK(ring_.wait_writing());
      WEFT_CHECK(copy_twin(candidate_->twin, equal_, *spot_));
    }
    for (const Slice& slice : waiting_) write(slice);
    waiting_.clear();
    return {};
  }

  void write(const Slice& slice) {
    if (spot_->is_there) return;
    slice.window->writing.run(
        [bytes = slice.bytes, pack = spot_->pack, at = spot_->offset + slice.at] { return pack->write(at, bytes); });
  }

  void start_hashing(ImportWindow& window, std::span<const std::byte> bytes, std::uint64_t at) {
    auto digests = std::span(chunks_).subspan(at / kDigestChunk, chunk_count(bytes.size()));
    window.hashing.run([bytes, digests]() -> Status {
      sha256_chunks(bytes, digests);
      return {};
    });
  }

  void start_comparing(ImportWindow& window, std::span<const std::byte> bytes, std::uint64_t at) {
    window.hashing.run([this, bytes, at]() -> Status {
      if (!differs_ && !equals_twin(bytes, {candidate_->twin.fd, candidate_->twin.offset + at})) differs_ = true;
      return {};
    });
  }

  WindowRing& ring_;
  Source& source_;
  const StreamPlan& plan_;
  std::vector<Digest> chunks_;
  std::uint64_t hint_ = 0, head_ = 0;
  std::optional<Candidate> candidate_;
  std::atomic<bool> differs_{false};
  std::uint64_t equal_ = 0;    // count of first bytes that equal the candidate's and are in no window any more
  std::deque<Slice> waiting_;  // later slices, kept while the extent may equal the candidate
  std::optional<PackSpot> spot_;
};

}  // namespace

WindowRing::WindowRing(ThreadPool& hashers, ThreadPool& writer, std::size_t count, std::size_t capacity) {
  std::size_t whole_chunks = std::max<std::size_t>(1, capacity / kDigestChunk) * kDigestChunk;
  for (std::size_t i = 0; i < count; ++i)
    windows_.push_back(std::make_unique<ImportWindow>(hashers, writer, whole_chunks));
}

Result<ImportWindow*> WindowRing::take() {
  ImportWindow* window = windows_[next_].get();
  next_ = (next_ + 1) % windows_.size();
  WEFT_CHECK(window->hashing.wait());
  WEFT_CHECK(window->writing.wait());
  WEFT_CHECK(window->plain.wait());
  return window;
}

Status WindowRing::wait_hashing() {
  Status first;
  for (const auto& window : windows_)
    if (Status status = window->hashing.wait(); !status.ok() && first.ok()) first = std::move(status);
  return first;
}

bool WindowRing::writing_idle() {
  return std::all_of(windows_.begin(), windows_.end(), [](const auto& window) { return window->writing.idle(); });
}

Status WindowRing::wait_writing() {
  Status first;
  for (const auto& window : windows_)
    if (Status status = window->writing.wait(); !status.ok() && first.ok()) first = std::move(status);
  return first;
}

Status WindowRing::shed() {
  WEFT_CHECK(wait_hashing());
  WEFT_CHECK(wait_writing());
  for (const auto& window : windows_) WEFT_CHECK(window->plain.wait());
  for (const auto& window : windows_) window->forget_space();
  return {};
}

Status WindowRing::end() {
  Status written = wait_writing();
  windows_.clear();
  return written;
}

bool equals_twin(std::span<const std::byte> bytes, const Twin& twin) {
  thread_local std::vector<std::byte> buffer(kCompareStep);
  for (std::size_t done = 0; done < bytes.size();) {
    std::size_t step = std::min(kCompareStep, bytes.size() - done);
    if (!read_exact(twin.fd, twin.offset + done, std::span(buffer).first(step), "pack").ok()) return false;
    if (std::memcmp(buffer.data(), bytes.data() + done, step) != 0) return false;
    done += step;
  }
  return true;
}

Status copy_twin(const Twin& from, std::uint64_t length, const PackSpot& to) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kCopyStep, length));
  for (std::uint64_t done = 0; done < length;) {
    auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), length - done));
    WEFT_CHECK(read_exact(from.fd, from.offset + done, piece, "pack"));
    WEFT_CHECK(to.pack->write(to.offset + done, piece));
    done += piece.size();
  }
  return {};
}

Result<Streamed> stream(WindowRing& ring, Source& source, const StreamPlan& plan) {
  return Passage(ring, source, plan).run();
}

}  // namespace weft

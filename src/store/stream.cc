#include "store/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/sha256.h"
#include "base/sys.h"
#include "store/hash.h"

namespace weft {
namespace {

constexpr std::size_t kCompareStep = 128U << 10U;

// What the jobs of one stream() write to; it outlives them.
struct Findings {
  std::vector<Digest> chunks;
  std::atomic<bool> differs{false};
  Xxh3Stream xxh;
};

void start_hashing(ImportWindow& window, std::span<const std::byte> bytes, std::uint64_t offset, Findings& findings) {
  auto digests = std::span(findings.chunks).subspan(offset / kDigestChunk, chunk_count(bytes.size()));
  window.hashing.run([bytes, digests]() -> Status {
    sha256_chunks(bytes, digests);
    return {};
  });
}

void start_comparing(ImportWindow& window, std::span<const std::byte> bytes, const Twin& twin, Findings& findings) {
  window.hashing.run([bytes, twin, &findings]() -> Status {
    if (findings.differs) return {};
    WEFT_TRY(bool equal, equals_twin(bytes, twin));
    if (!equal) findings.differs = true;
    return {};
  });
}

// Reads the slice that begins `done` bytes into the extent, its jobs starting as it comes, then has it written.
Status read_slice(ImportWindow& window, std::size_t bytes, std::uint64_t done, Source& source, const StreamPlan& plan,
                  Findings& findings) {
  std::span<std::byte> slice = window.space().subspan(plan.at % kPackBlock, bytes);
  for (std::size_t filled = 0, hashed = 0; filled < bytes;) {
    std::span<std::byte> step = slice.subspan(filled, std::min(kReadStep, bytes - filled));
    WEFT_CHECK(source.read(plan.range.offset + done + filled, step));
    findings.xxh.update(step);
    if (plan.twin) start_comparing(window, step, {plan.twin->fd, plan.twin->offset + done + filled}, findings);
    filled += step.size();
    if (plan.prove && (filled - hashed >= hash_job_bytes() || filled == bytes)) {
      start_hashing(window, slice.subspan(hashed, filled - hashed), done + hashed, findings);
      hashed = filled;
    }
  }
  if (plan.into != nullptr)
    window.writing.run([slice, pack = plan.into, at = plan.at + done] { return pack->write(at, slice); });
  return {};
}

Status read_and_start(WindowRing& ring, Source& source, const StreamPlan& plan, Findings& findings) {
  for (std::uint64_t done = 0; done < plan.range.length;) {
    WEFT_TRY(ImportWindow * window, ring.take());
    std::size_t bytes = std::min<std::uint64_t>(window->capacity(), plan.range.length - done);
    WEFT_CHECK(read_slice(*window, bytes, done, source, plan, findings));
    done += bytes;
  }
  return {};
}

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

Result<bool> equals_twin(std::span<const std::byte> bytes, const Twin& twin) {
  thread_local std::vector<std::byte> buffer(kCompareStep);
  for (std::size_t done = 0; done < bytes.size();) {
    std::size_t step = std::min(kCompareStep, bytes.size() - done);
    WEFT_CHECK(read_exact(twin.fd, twin.offset + done, std::span(buffer).first(step), "pack"));
    if (std::memcmp(buffer.data(), bytes.data() + done, step) != 0) return false;
    done += step;
  }
  return true;
}

Result<bool> equal_twins(const Twin& a, const Twin& b, std::uint64_t length) {
  std::vector<std::byte> bytes(kCompareStep);
  for (std::uint64_t done = 0; done < length; done += kCompareStep) {
    auto piece = std::span(bytes).first(std::min<std::uint64_t>(kCompareStep, length - done));
    WEFT_CHECK(read_exact(a.fd, a.offset + done, piece, "pack"));
    WEFT_TRY(bool equal, equals_twin(piece, {b.fd, b.offset + done}));
    if (!equal) return false;
  }
  return true;
}

Result<Streamed> stream(WindowRing& ring, Source& source, const StreamPlan& plan) {
  Findings findings;
  if (plan.prove) findings.chunks.resize(chunk_count(plan.range.length));
  Status read = read_and_start(ring, source, plan, findings);
  Status hashed = ring.wait_hashing();  // always: the jobs point to `findings`
  WEFT_CHECK(std::move(read));
  WEFT_CHECK(std::move(hashed));
  Streamed out;
  out.id = {plan.range.length, findings.xxh.digest128(), {}};
  if (plan.prove) out.id.root = tree_root(plan.range.length, findings.chunks);
  out.chunks = std::move(findings.chunks);
  out.equal = plan.twin && !findings.differs;
  return out;
}

}  // namespace weft

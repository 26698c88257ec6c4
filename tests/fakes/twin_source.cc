#include "fakes/twin_source.h"

#include <algorithm>
#include <cstring>

#include "base/sha256.h"

namespace weft::testing {

Result<std::vector<std::byte>> TwinSource::manifest(const Digest& digest, Deadline) {
  const std::lock_guard lock(mutex_);
  if (vanished_) return Error{Errc::unreachable, "twin: gone"};
  const auto found = manifests_.find(digest);
  if (found == manifests_.end()) return Error{Errc::not_found, "twin: no such manifest"};
  return found->second;
}

Result<std::shared_ptr<const TwinSource::Stored>> TwinSource::find(const ContentId& id, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (vanished_) return Error{Errc::unreachable, "twin: gone"};
    const auto found = blobs_.find(id);
    if (found == blobs_.end()) return Error{Errc::not_found, "twin: no such blob"};
    if (!found->second->hangs) return found->second;
    if (wake_.wait_until(lock, deadline) == std::cv_status::timeout)
      return Error{Errc::timed_out, "twin: no answer in time"};
  }
}

Result<std::vector<Digest>> TwinSource::chunks(const Digest&, const ContentId& id, Deadline deadline) {
  WEFT_TRY(const auto stored, find(id, deadline));
  return stored->chunks;
}

Result<SourceBytes> TwinSource::read(const Digest&, std::span<const ChunkRun> runs, Deadline deadline,
                                     ReadAid& /*aid*/) {
  std::vector<std::byte> out;
  for (const ChunkRun& run : runs) {
    WEFT_TRY(const auto stored, find(run.id, deadline));
    const std::vector<std::byte>& bytes = stored->bytes;
    const std::size_t begin = std::min<std::size_t>(bytes.size(), run.offset());
    const std::size_t end = std::min<std::size_t>(bytes.size(), run.offset() + run.length());
    out.insert(out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin),
               bytes.begin() + static_cast<std::ptrdiff_t>(end));
  }
  const std::lock_guard lock(mutex_);
  out.resize(out.size() + surplus_);
  ++reads_;
  bytes_read_ += out.size();
  SourceBytes bytes{std::make_unique_for_overwrite<std::byte[]>(out.size()), out.size(), {}};
  if (!out.empty()) std::memcpy(bytes.memory.get(), out.data(), out.size());
  return bytes;
}

void TwinSource::arrived(const Digest& /*manifest*/, std::span<const ChunkRun> runs) {
  const std::lock_guard lock(mutex_);
  announced_.insert(announced_.end(), runs.begin(), runs.end());
}

void TwinSource::put_manifest(const Digest& digest, std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  manifests_[digest] = std::move(bytes);
}

std::pair<Digest, std::vector<std::byte>> TwinSource::lose_manifest() {
  const std::lock_guard lock(mutex_);
  auto lost = manifests_.extract(manifests_.begin());
  return {lost.key(), std::move(lost.mapped())};
}

void TwinSource::put(const ContentId& id, std::vector<std::byte> bytes) {
  std::vector<Digest> chunks(chunk_count(bytes.size()));
  sha256_chunks(bytes, chunks);
  const std::lock_guard lock(mutex_);
  blobs_[id] = std::make_shared<const Stored>(Stored{std::move(bytes), std::move(chunks)});
}

void TwinSource::change(const ContentId& id, const std::function<void(Stored&)>& change) {
  const std::lock_guard lock(mutex_);
  Stored changed = *blobs_.at(id);
  change(changed);
  blobs_.at(id) = std::make_shared<const Stored>(std::move(changed));
}

void TwinSource::lose(const ContentId& id) {
  const std::lock_guard lock(mutex_);
  blobs_.erase(id);
}

void TwinSource::add_to_answers(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  surplus_ = bytes;
}

void TwinSource::let_go() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, stored] : blobs_) {
    if (!stored->hangs) continue;
    Stored changed = *stored;
    changed.hangs = false;
    stored = std::make_shared<const Stored>(std::move(changed));
  }
  wake_.notify_all();
}

void TwinSource::vanish() {
  const std::lock_guard lock(mutex_);
  vanished_ = true;
  wake_.notify_all();
}

std::uint64_t TwinSource::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

std::uint64_t TwinSource::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return bytes_read_;
}

std::vector<ChunkRun> TwinSource::announced() const {
  const std::lock_guard lock(mutex_);
  return announced_;
}

}  // namespace weft::testing

#include "packs/plain_digests.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weft {
namespace {

// Hashing less than this takes less time than waking another thread.
constexpr std::size_t kDigestJobMin = 64U << 10U;
// The limit of files that are hashed at a time: a piece may have a million files of one byte.
constexpr std::size_t kFilesAtOnce = 1024;

}  // namespace

PlainDigest::PlainDigest(ThreadPool& pool, std::shared_ptr<PlainSums> sums) : pool_(pool), sums_(std::move(sums)) {
  sums_->digests.assign(sums_->sizes.size(), Digest{});
  static const Digest empty = sha256({});
  for (std::size_t i = 0; i < sums_->sizes.size(); ++i)
    if (sums_->sizes[i] == 0) sums_->digests[i] = empty;
  pass_empty();
}

void PlainDigest::feed(std::span<const std::byte> bytes, JobGroup& user) {
  {
    const MutexLock lock(mutex_);
    if (working_ || bytes.size() >= kDigestJobMin) {
      user.begin();
      waiting_.push_back({bytes, &user});
      if (working_) return;
      working_ = true;
      bytes = {};
    }
  }
  if (!bytes.empty()) return hash(bytes);  // no job runs, and only this thread starts one
  pool_.submit([this] { work(); });
}

void PlainDigest::wait() {
  UniqueLock lock(mutex_);
  done_.wait(lock, [this]() WEFT_REQUIRES(mutex_) { return !working_; });
}

bool PlainDigest::idle() {
  const MutexLock lock(mutex_);
  return !working_;
}

void PlainDigest::work() {
  for (;;) {
    Piece piece;
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty()) {
        working_ = false;
        done_.notify_all();
        return;
      }
      piece = waiting_.front();
      waiting_.pop_front();
    }
    hash(piece.bytes);
    piece.user->end({});
  }
}

void PlainDigest::hash(std::span<const std::byte> bytes) {
  while (!bytes.empty() && file_ < sums_->sizes.size()) {
    if (!open_) {
      if (const std::size_t hashed = hash_whole(bytes); hashed > 0) {
        bytes = bytes.subspan(hashed);
        continue;
      }
      open_.emplace();
      left_ = sums_->sizes[file_];
    }
    const std::size_t part = std::min<std::uint64_t>(left_, bytes.size());
    open_->update(bytes.first(part));
    bytes = bytes.subspan(part);
    left_ -= part;
    if (left_ > 0) return;
    sums_->digests[file_++] = open_->finish();
    open_.reset();
    pass_empty();
  }
}

// Hashes the first files that begin and end in these bytes, at most kFilesAtOnce. Returns how many bytes they have.
std::size_t PlainDigest::hash_whole(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  std::vector<std::span<const std::byte>> messages;
  std::vector<std::size_t> files;
  for (; files.size() < kFilesAtOnce && file_ < sums_->sizes.size() && sums_->sizes[file_] <= bytes.size() - at;
       pass_empty()) {
    messages.push_back(bytes.subspan(at, sums_->sizes[file_]));
    at += messages.back().size();
    files.push_back(file_++);
  }
  std::vector<Digest> digests(messages.size());
  sha256_each(messages, digests);
  for (std::size_t i = 0; i < files.size(); ++i) sums_->digests[files[i]] = digests[i];
  return at;
}

void PlainDigest::pass_empty() {
  while (file_ < sums_->sizes.size() && sums_->sizes[file_] == 0) ++file_;
}

PlainDigest* PlainDigests::begin(std::shared_ptr<PlainSums> sums) {
  while (!sources_.empty() && sources_.front()->idle()) sources_.pop_front();
  if (!sums) return nullptr;
  return sources_.emplace_back(std::make_unique<PlainDigest>(pool_, std::move(sums))).get();
}

void PlainDigests::finish() {
  sources_.clear();  // each waits
}

}  // namespace weft

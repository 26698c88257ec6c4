#include "origin/copy.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kStepChunks = 8;
constexpr std::uint64_t kWritebackEvery = 32U << 20U;

class PackCopy {
 public:
  PackCopy(const PackToc& toc, int from, int to, const SafePath& path, std::vector<ContentId>* bad, PaceGate* gate)
      : toc_(toc), from_(from), to_(to), path_(path), bad_(bad), buffer_(kStepChunks * kDigestChunk) {
    if (gate != nullptr) paced_.emplace(*gate, Traffic::staging, PaceEnd::origin);
  }

  Status run(Progress& progress) {
    for (const PackEntry& entry : toc_.entries) {
      const Status copied = copy(entry, progress);
      if (bad_ != nullptr && !copied.ok() && copied.error().code == Errc::corrupt)
        bad_->push_back(entry.id);
      else
        WEFT_CHECK(copied);
    }
    return {};
  }

 private:
  Status copy(const PackEntry& entry, Progress& progress) {
    if (entry.chunks.size() != chunk_count(entry.id.length) ||
        tree_root(entry.id.length, entry.chunks) != entry.id.root)
      return damaged(entry);
    for (std::uint64_t chunk = 0; chunk < entry.chunks.size(); chunk += kStepChunks) {
      WEFT_CHECK(check_cancelled(progress));
      WEFT_CHECK(copy(entry, chunk, progress));
    }
    return {};
  }

  Status copy(const PackEntry& entry, std::uint64_t chunk, Progress& progress) {
    const std::uint64_t within = chunk * kDigestChunk;
    const std::uint64_t length = std::min(kStepChunks * kDigestChunk, entry.id.length - within);
    const auto bytes = std::span(buffer_).first(length);
    const Status read = read_exact(from_, entry.offset + within, bytes, pack_name(toc_.pack));
    if (bad_ != nullptr && !read.ok() && read.error().code == Errc::io) return damaged(entry);
    WEFT_CHECK(read);
    std::vector<Digest> digests(chunk_count(length));
    sha256_chunks(bytes, digests);
    if (!std::equal(digests.begin(), digests.end(), entry.chunks.begin() + static_cast<std::ptrdiff_t>(chunk)))
      return damaged(entry);
    WEFT_CHECK(write(entry.offset + within, bytes, progress));
    write_behind(entry.offset + within + length);
    return {};
  }

  // Writes the bytes, piece by piece if a rate holds them back.
  Status write(std::uint64_t offset, std::span<const std::byte> bytes, Progress& progress) {
    while (!bytes.empty()) {
      const std::size_t piece = paced_ ? paced_->piece(bytes.size()) : bytes.size();
      std::chrono::nanoseconds held{0};
      if (paced_) WEFT_CHECK(paced_->take_turn(piece, held, [&progress] { return check_cancelled(progress); }));
      WEFT_CHECK(write_exact(to_, offset, bytes.first(piece), path_));
      progress.advance(piece);
      offset += piece;
      bytes = bytes.subspan(piece);
    }
    return {};
  }

  // Starts writeback early, so that the final sync is short and reads of other nodes do not queue behind it.
  void write_behind(std::uint64_t end) {
    if (end < started_ + kWritebackEvery) return;
    start_writeback(to_, started_, end - started_);
    started_ = end;
  }

  Error damaged(const PackEntry& entry) const {
    return Error{Errc::corrupt, fmt::format("pack {}: the {} bytes at {} are damaged; run `weft fsck`",
                                            pack_name(toc_.pack), entry.id.length, entry.offset)};
  }

  const PackToc& toc_;
  const int from_;
  const int to_;
  const SafePath& path_;
  std::vector<ContentId>* const bad_;  // null: the first damaged blob is an error
  std::vector<std::byte> buffer_;
  std::optional<PaceGate::Read> paced_;  // none: the copy is not paced
  std::uint64_t started_ = 0;
};

}  // namespace

Status copy_pack(const PackToc& toc, int pack, const SafePath& path, Progress& progress,
                 std::vector<ContentId>* damaged, PaceGate* gate) {
  WEFT_TRY(const Fd to, open_file(path, O_RDWR | O_CREAT | O_EXCL));
  WEFT_CHECK(PackCopy(toc, pack, to.get(), path, damaged, gate).run(progress));
  WEFT_CHECK(resize_file(to.get(), toc.size, fmt::format("{}: setting its size", path)));
  return sync_file(to.get(), path);
}

Result<PackEntry> hash_blob(int pack, const ContentId& id, std::uint64_t offset, const Progress& progress) {
  PackEntry entry{id, offset, {}};
  std::vector<std::byte> buffer(std::min(id.length, kStepChunks * kDigestChunk));
  for (std::uint64_t at = 0; at < id.length; at += buffer.size()) {
    WEFT_CHECK(check_cancelled(progress));
    const auto bytes = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), id.length - at));
    WEFT_CHECK(read_exact(pack, offset + at, bytes, "pack"));
    std::vector<Digest> digests(chunk_count(bytes.size()));
    sha256_chunks(bytes, digests);
    entry.chunks.insert(entry.chunks.end(), digests.begin(), digests.end());
  }
  if (tree_root(id.length, entry.chunks) == id.root) return entry;
  return Error{Errc::corrupt, fmt::format("the {} bytes at {} have another digest", id.length, offset)};
}

}  // namespace weft

#include "packs/window.h"

#include <algorithm>

#include "base/sha256.h"
#include "os/holes.h"

namespace weft {
namespace {

// The limit of pieces per hash job.
constexpr std::size_t kJobPieces = 1024;
// Hashing less than this takes less time than waking another thread.
constexpr std::size_t kJobBytesMin = 64U << 10U;

// The digest of a chunk of zeros, which sparse files have many of.
const Digest& digest_of_zeros() {
  static const Digest digest = sha256(std::vector<std::byte>(kDigestChunk));
  return digest;
}

}  // namespace

std::size_t hash_job_bytes() {
  return sha256_each_best() * kDigestChunk;
}

std::size_t ImportWindow::count_fitting(std::span<const Range> ranges) const {
  std::size_t count = 0;
  std::uint64_t total = 0;
  while (count < ranges.size() && count < kWindowExtentsMax && ranges[count].length <= capacity_ - total)
    total += ranges[count++].length;
  return count;
}

void ImportWindow::lay_out(std::span<const Range> ranges, std::size_t first) {
  extents.clear();
  pieces_.clear();
  next_piece_ = 0;
  std::size_t at = ranges.front().offset % kPackBlock;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    WindowExtent extent{first + i, at, {ranges[i].length, {}}, {}};
    extent.chunks.resize(chunk_count(ranges[i].length));
    for (std::size_t chunk = 0; chunk < extent.chunks.size(); ++chunk) pieces_.push_back({i, chunk});
    at += ranges[i].length;
    extents.push_back(std::move(extent));
  }
}

std::span<const std::byte> ImportWindow::bytes_of(const Piece& piece) {
  auto bytes = bytes_of(extents[piece.extent]);
  std::size_t begin = piece.chunk * kDigestChunk;
  return bytes.subspan(begin, std::min<std::size_t>(kDigestChunk, bytes.size() - begin));
}

void ImportWindow::hash_pieces(std::size_t first, std::size_t last) {
  std::vector<std::span<const std::byte>> messages;
  std::vector<Digest*> places;
  for (std::size_t i = first; i < last; ++i) {
    const auto bytes = bytes_of(pieces_[i]);
    Digest& digest = extents[pieces_[i].extent].chunks[pieces_[i].chunk];
    if (bytes.size() == kDigestChunk && is_zero(bytes)) {
      digest = digest_of_zeros();
      continue;
    }
    messages.push_back(bytes);
    places.push_back(&digest);
  }
  std::vector<Digest> digests(messages.size());
  sha256_each(messages, digests);
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = digests[i];
}

void ImportWindow::hash_ready(std::size_t filled) {
  const std::byte* end = space().data() + filled;
  const std::size_t job_bytes = std::min(hash_job_bytes(), capacity_);
  while (next_piece_ < pieces_.size()) {
    std::size_t first = next_piece_;
    std::size_t bytes = 0;
    while (next_piece_ < pieces_.size() && bytes < job_bytes && next_piece_ - first < kJobPieces) {
      auto piece = bytes_of(pieces_[next_piece_]);
      if (piece.data() + piece.size() > end) break;
      bytes += piece.size();
      ++next_piece_;
    }
    bool enough = bytes >= job_bytes || next_piece_ - first == kJobPieces || next_piece_ == pieces_.size();
    if (!enough) {
      next_piece_ = first;  // wait for more bytes
      return;
    }
    if (bytes < kJobBytesMin) {
      hash_pieces(first, next_piece_);
      continue;
    }
    hashing.run([this, first, last = next_piece_] {
      hash_pieces(first, last);
      return Status{};
    });
  }
}

Status ImportWindow::fill(Source& source, std::span<const Range> ranges, std::size_t first) {
  space();
  lay_out(ranges, first);
  const std::uint64_t offset = ranges.front().offset;
  const std::size_t begin = extents.front().at;
  const std::size_t end = begin + (ranges.back().offset + ranges.back().length - offset);
  for (std::size_t filled = begin; filled < end;) {
    std::size_t step = std::min(kReadStep, end - filled);
    WEFT_CHECK(source.read(offset + filled - begin, space().subspan(filled, step)));
    source.feed_digest(space().subspan(filled, step), plain);
    filled += step;
    hash_ready(filled);
  }
  return {};
}

Status ImportWindow::finish_ids() {
  WEFT_CHECK(hashing.wait());
  for (WindowExtent& extent : extents) extent.id.root = tree_root(extent.id.length, extent.chunks);
  return {};
}

}  // namespace weft

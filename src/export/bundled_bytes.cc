#include "export/bundled_bytes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/sha256.h"
#include "blobs/open_blobs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kSegmentsKept = 4;

}  // namespace

Result<std::vector<std::byte>> BundledBytes::read(const Extent& extent, const SmallFile& file) const {
  if (extent.id.length > kSegmentMax)
    return Error{Errc::corrupt, fmt::format("{}: expected a segment of at most {} bytes, got {}", file.path,
                                            kSegmentMax, extent.id.length)};
  WEFT_TRY(const auto places, open_blobs(store_, std::span(&extent.id, 1)));
  std::vector<std::byte> bytes(extent.id.length);
  WEFT_CHECK(read_exact(places.front().pack->fd(), places.front().offset, bytes, file.path));
  std::vector<Digest> chunks(chunk_count(bytes.size()));
  sha256_chunks(bytes, chunks);
  if (tree_root(bytes.size(), chunks) != extent.id.root)
    return Error{Errc::corrupt, fmt::format("{}: the stored bytes of its bundle are damaged: expected the digest {}; "
                                            "run `weft fsck`",
                                            file.path, to_hex(extent.id.root))};
  return bytes;
}

Result<std::span<const std::byte>> BundledBytes::of(const SmallFile& file) {
  if (file.bytes.length == 0) return std::span<const std::byte>();
  const std::vector<Extent>& extents = bundles_[file.bundle].extents;
  const auto behind = std::ranges::upper_bound(extents, file.bytes.offset, {}, &Extent::offset);
  const Extent& extent = *std::prev(behind);  // the first extent begins at 0
  const std::uint64_t at = file.bytes.offset - extent.offset;
  if (at > extent.id.length || file.bytes.length > extent.id.length - at)
    return Error{Errc::corrupt, fmt::format("{}: expected its bytes in one segment", file.path)};
  const auto known = std::ranges::find(known_, &extent, &Segment::extent);
  if (known != known_.end()) {
    known_.splice(known_.begin(), known_, known);
  } else {
    WEFT_TRY(std::vector<std::byte> bytes, read(extent, file));
    known_.push_front({&extent, std::move(bytes)});
    if (known_.size() > kSegmentsKept) known_.pop_back();
  }
  return std::span<const std::byte>(known_.front().bytes).subspan(at, file.bytes.length);
}

}  // namespace weft

#include "format/hdf5/file.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "format/hdf5/checksum.h"
#include "format/hdf5/hdf5.h"

namespace weft {
namespace {

constexpr std::uint64_t kSuperblockMax = 112;
constexpr std::uint64_t kUserBlockMin = 512;

bool is_hdf5_width(std::size_t bytes) {
  return bytes == 2 || bytes == 4 || bytes == 8;
}

Status spend(std::uint64_t& left, std::uint64_t count, std::string_view what) {
  if (count > left) return hdf5_error(fmt::format("its {} are more than a file of this size has", what));
  left -= count;
  return {};
}

}  // namespace

Error hdf5_error(std::string message) {
  return Error{Errc::unsupported, std::move(message)};
}

Error hdf5_short(std::string_view what, std::uint64_t at) {
  return hdf5_error(fmt::format("{} at {} is shorter than its fields", what, at));
}

// A block's first bytes may be read before its length is known, so each byte counts twice.
Hdf5File::Hdf5File(ByteSource& source, bool verify)
    : source_(source),
      verify_(verify),
      bytes_left_(2 * std::min(source.size(), limits::kHdf5BlocksMax / 2)),
      links_left_(std::min(source.size() / limits::kHdf5NodeBytes, limits::kHdf5NodesMax)),
      names_left_(
          std::min(2 * std::min(source.size(), limits::kHdf5NamesMax) + limits::kTensorNameMax, limits::kHdf5NamesMax)),
      chunks_left_(limits::kHdf5ChunksAllMax) {}

// The superblock lies at 0, or behind a user block of 512, 1024, 2048, … bytes.
Status Hdf5File::open() {
  for (std::uint64_t at = 0; at + kHdf5Signature.size() <= source_.size(); at = at == 0 ? kUserBlockMin : 2 * at) {
    Hdf5Block begin(kHdf5Signature.size());
    WEFT_CHECK(source_.read(at, begin));
    if (is_hdf5(begin)) return read_superblock(at);
    if (at > limits::kVersionBytesMax / 2) break;
  }
  return hdf5_error("the file has no signature of HDF5");
}

Status Hdf5File::read_superblock(std::uint64_t at) {
  constexpr std::string_view kWhat = "superblock";
  Hdf5Block bytes(static_cast<std::size_t>(std::min(kSuperblockMax, source_.size() - at)));
  WEFT_CHECK(source_.read(at, bytes));
  Hdf5Fields head = fields(bytes);
  head.skip(kHdf5Signature.size());
  const std::uint64_t version = head.number(1);
  if (version > 3) return hdf5_error(fmt::format("superblock: expected a version from 0 to 3, got {}", version));
  const bool old = version <= 1;
  head.skip(old ? 4 : 0);  // further versions
  widths_ = {head.number(1), head.number(1)};
  if (!is_hdf5_width(widths_.address) || !is_hdf5_width(widths_.length))
    return hdf5_error(fmt::format("superblock: expected addresses and lengths of 2, 4 or 8 bytes, got {} and {}",
                                  widths_.address, widths_.length));
  head.skip(!old ? 1 : version == 0 ? 9 : 13);
  Hdf5Fields body(head.rest().bytes(head.remaining()), widths_);
  base_ = body.address();
  body.address();  // of free space, or of the extension
  const std::uint64_t end = body.address();
  if (old) body.address(), body.address();  // of driver information, and of the name in the root's entry
  root_ = body.address();
  const std::size_t length = head.position() + body.position() + 4;
  if (body.ended() || (!old && length > bytes.size())) return hdf5_short(kWhat, at);
  if (!old) WEFT_CHECK(check_sum(kWhat, at, std::span(bytes).first(length)));
  if (base_ != at && base_ != 0)
    return hdf5_error(fmt::format("superblock: expected {} as its place, got {}", at, base_));
  if (end > source_.size())
    return hdf5_error(fmt::format("the file is truncated: expected {} bytes, got {}", end, source_.size()));
  return {};
}

Result<Hdf5Block> Hdf5File::block(std::string_view what, std::uint64_t at, std::uint64_t length) {
  if (blocks_.size() >= std::min(source_.size() / limits::kHdf5NodeBytes, limits::kHdf5NodesMax))
    return hdf5_error("its blocks are more than a file of this size has");
  if (!blocks_.insert(at).second) return hdf5_error(fmt::format("{} at {} is used twice", what, at));
  return more(what, at, length);
}

Result<Hdf5Block> Hdf5File::more(std::string_view what, std::uint64_t at, std::uint64_t length) {
  if (length > limits::kHdf5BlockMax)
    return hdf5_error(
        fmt::format("{} at {}: expected at most {} bytes, got {}", what, at, limits::kHdf5BlockMax, length));
  const std::uint64_t size = source_.size() - base_;
  if (at > size || length > size - at) return hdf5_error(fmt::format("{} at {} is past the end", what, at));
  WEFT_CHECK(spend(bytes_left_, length, "blocks"));
  Hdf5Block bytes(static_cast<std::size_t>(length));
  WEFT_CHECK(source_.read(base_ + at, bytes));
  return bytes;
}

Status Hdf5File::check_signature(std::string_view what, std::uint64_t at, std::span<const std::byte> bytes,
                                 std::string_view signature) {
  if (bytes.size() >= signature.size() &&
      std::ranges::equal(bytes.first(signature.size()), std::as_bytes(std::span(signature))))
    return {};
  return hdf5_error(fmt::format("{} at {}: expected the signature {}, got other bytes", what, at, signature));
}

Status Hdf5File::check_sum(std::string_view what, std::uint64_t at, std::span<const std::byte> bytes) const {
  constexpr std::size_t kSumBytes = 4;
  if (bytes.size() < kSumBytes) return hdf5_short(what, at);
  const auto covered = bytes.first(bytes.size() - kSumBytes);
  const auto expected = static_cast<std::uint32_t>(fields(bytes.last(kSumBytes)).number(kSumBytes));
  return compare_sum(what, at, expected, verify_ ? hdf5_checksum(covered) : expected);
}

Status Hdf5File::compare_sum(std::string_view what, std::uint64_t at, std::uint32_t expected, std::uint32_t got) const {
  if (!verify_ || expected == got) return {};
  return hdf5_error(fmt::format("{} at {}: its checksum does not match", what, at));
}

Result<Range> Hdf5File::data(std::uint64_t at, std::uint64_t length) const {
  const std::uint64_t size = source_.size() - base_;
  if (at > size || length > size - at)
    return hdf5_error(fmt::format("its {} bytes at {} are past the end", length, at));
  return Range{base_ + at, length};
}

Status Hdf5File::keep_link(std::size_t name_bytes) {
  WEFT_CHECK(spend(links_left_, 1, "links"));
  return spend(names_left_, name_bytes, "names");
}

Status Hdf5File::keep_chunks(std::uint64_t count) {
  return spend(chunks_left_, count, "chunks");
}

}  // namespace weft

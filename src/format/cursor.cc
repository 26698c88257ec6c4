#include "format/cursor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace weft {

HeaderCursor::HeaderCursor(ByteSource& source, std::uint64_t end)
    : source_(source), end_(std::min(end, source.size())) {
  window_.resize(std::min(kWindow, end_));
}

Errc HeaderCursor::lacking(std::uint64_t count) const {
  return count > source_.size() - position_ ? Errc::invalid : Errc::unsupported;
}

Status HeaderCursor::need(std::uint64_t count) const {
  if (count <= remaining()) return {};
  std::string_view of = end_ == source_.size() ? "file" : "largest header";
  return Error{lacking(count), fmt::format("expected {} bytes at byte {}, got {} before the end of the {}", count,
                                           position_, remaining(), of)};
}

// Moves the window so that it begins at position_. A jump makes a small window, because a format
// often skips most of a file.
Status HeaderCursor::fill() {
  const bool jumped = position_ < window_begin_ || position_ - window_begin_ > window_size_;
  window_begin_ = position_;
  window_size_ = 0;
  std::uint64_t count = std::min<std::uint64_t>(window_.size(), remaining());
  if (jumped) count = std::min(count, kJumpWindow);
  WEFT_CHECK(source_.read(window_begin_, std::span(window_).first(count)));
  window_size_ = count;
  return {};
}

Status HeaderCursor::read(std::span<std::byte> out) {
  WEFT_CHECK(need(out.size()));
  while (!out.empty()) {
    if (position_ - window_begin_ >= window_size_) WEFT_CHECK(fill());
    std::uint64_t in_window = position_ - window_begin_;
    std::size_t count = std::min<std::uint64_t>(out.size(), window_size_ - in_window);
    std::memcpy(out.data(), window_.data() + in_window, count);
    out = out.subspan(count);
    position_ += count;
  }
  return {};
}

Status HeaderCursor::skip(std::uint64_t count) {
  WEFT_CHECK(need(count));
  position_ += count;
  return {};
}

Status HeaderCursor::move_to(std::uint64_t position) {
  if (position > end_)
    return Error{Errc::internal, fmt::format("expected a position of at most {}, got {}", end_, position)};
  position_ = position;
  return {};
}

Result<std::span<const std::byte>> HeaderCursor::ahead(std::uint64_t count) {
  count = std::min({count, kWindow, remaining()});
  const auto has_all = [&] {
    return position_ >= window_begin_ && position_ - window_begin_ <= window_size_ &&
           count <= window_size_ - (position_ - window_begin_);
  };
  if (!has_all()) WEFT_CHECK(fill());
  if (!has_all()) WEFT_CHECK(fill());  // the window after a jump may be shorter than `count`
  return std::span<const std::byte>(window_).subspan(position_ - window_begin_, count);
}

Result<std::string> HeaderCursor::text(std::uint64_t count) {
  WEFT_CHECK(need(count));
  std::string out(count, '\0');
  WEFT_CHECK(read(std::as_writable_bytes(std::span(out))));
  return out;
}

}  // namespace weft

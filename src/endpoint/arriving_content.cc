#include "endpoint/arriving_content.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"

namespace weft {
namespace {

using State = UpstreamState::What;

constexpr auto kPause = std::chrono::milliseconds(100);  // between two looks for bytes
constexpr std::size_t kHashStep = 1U << 20U;             // bytes of one read
constexpr std::uint64_t kHashAhead = 32U << 20U;         // bytes that one call hashes without sending them

}  // namespace

bool ArrivingContent::has(std::uint64_t offset) {
  std::byte one{};
  const auto got = parts_.files.read(parts_.source.repository, parts_.file, offset, std::span(&one, 1));
  return got.ok() && *got > 0;
}

// The hash needs all bytes of the file: of a request for the end alone, it reads the bytes before that from the pull.
void ArrivingContent::hash(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset != hashed_) return;
  sha256_.update(bytes);
  hashed_ += bytes.size();
}

Status ArrivingContent::hash_from_pull(std::uint64_t bytes_max) {
  std::vector<std::byte> buffer(kHashStep);
  for (const std::uint64_t end = std::min(parts_.file.size, hashed_ + bytes_max); hashed_ < end;) {
    const auto step = std::span(buffer).first(std::min<std::uint64_t>(kHashStep, end - hashed_));
    WEFT_TRY(const std::size_t got, parts_.files.read(parts_.source.repository, parts_.file, hashed_, step));
    if (got == 0) return {};
    hash(hashed_, step.first(got));
  }
  return {};
}

void ArrivingContent::note_sent(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (sent_.empty() || sent_.back().end != offset) sent_.push_back({offset, offset});
  sent_.back().sha256.update(bytes);
  sent_.back().end += bytes.size();
}

Error ArrivingContent::wrong(std::string_view got) const {
  return Error{Errc::corrupt,
               fmt::format("{}: \"{}\": expected a file with the SHA-256 {}, got {}", text_of(parts_.source.repository),
                           printable(parts_.file.path), to_hex(*parts_.file.sha256), got)};
}

// Errc::corrupt: the store has other bytes than the pull had.
Status ArrivingContent::check_sent(Sent& sent) const {
  Sha256 stored;
  std::vector<std::byte> buffer(kHashStep);
  for (std::uint64_t at = sent.offset; at < sent.end;) {
    if (parts_.cancelled()) return Error{Errc::cancelled, "the client has left"};
    const auto step = std::span(buffer).first(std::min<std::uint64_t>(kHashStep, sent.end - at));
    WEFT_TRY(const std::size_t got, parts_.read_stored(at, step));
    if (got == 0) return wrong("a stored file that ends before its end");
    stored.update(step.first(got));
    at += got;
  }
  if (stored.finish() == sent.sha256.finish()) return {};
  return wrong(fmt::format("other bytes from {} to {} while the pull ran", sent.offset, sent.end));
}

// Reads from the store, which has verified the file.
Result<std::size_t> ArrivingContent::read_end(std::uint64_t offset, std::span<std::byte> out) {
  if (is_verified_) return parts_.read_stored(offset, out);
  if (offset < last())
    return parts_.read_stored(offset, out.first(std::min<std::uint64_t>(out.size(), last() - offset)));
  for (Sent& sent : sent_) WEFT_CHECK(check_sent(sent));
  is_verified_ = true;
  return parts_.read_stored(offset, out);
}

// Returns 0 if the pull lacks the bytes, or if the last byte is not verified yet.
Result<std::size_t> ArrivingContent::try_read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset != hashed_) WEFT_CHECK(hash_from_pull(kHashAhead));
  if (offset < last() || is_verified_) {
    const std::uint64_t end = is_verified_ ? parts_.file.size : last();
    const auto part = out.first(std::min<std::uint64_t>(out.size(), end - offset));
    WEFT_TRY(const std::size_t got, parts_.files.read(parts_.source.repository, parts_.file, offset, part));
    hash(offset, part.first(got));
    note_sent(offset, part.first(got));
    return got;
  }
  WEFT_CHECK(hash_from_pull(kHashAhead));
  if (hashed_ < parts_.file.size) return std::size_t{0};
  const Digest digest = sha256_.finish();
  if (digest != parts_.file.sha256) return wrong("a file with the SHA-256 " + to_hex(digest));
  is_verified_ = true;
  return try_read(offset, out);
}

Result<std::size_t> ArrivingContent::read(std::uint64_t offset, std::span<std::byte> out) {
  for (;;) {
    if (parts_.cancelled()) return Error{Errc::cancelled, "the client has left"};
    if (is_stored_) return read_end(offset, out);
    const std::uint64_t before = hashed_;
    WEFT_TRY(const std::size_t got, try_read(offset, out));
    if (got > 0) return got;
    const UpstreamState state =
        parts_.upstream.obtain(parts_.source, Upstream::Until::stored, Deadline{}, parts_.cancelled);
    if (state.what == State::failed) return state.error;
    if (state.what == State::no_revision) return Error{Errc::not_found, "the revision is gone"};
    is_stored_ = state.what == State::stored;
    if (!is_stored_ && hashed_ == before) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace weft

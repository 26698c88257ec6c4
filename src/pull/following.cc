#include "pull/following.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "os/file_ops.h"
#include "pull/received_note.h"

namespace weft {

Following::Following(const PullArea& area, std::string key, std::span<const HubFile> files, const TimeSource& time)
    : area_(area), key_(std::move(key)), time_(time) {
  for (const HubFile& file : files)
    if (file.size > 0) files_.push_back({file, note_of(file)});
}

Result<Deadline> Following::step(PulledFiles& from, const std::function<bool()>& stopped) {
  if (time_.now() < next_) return next_;
  const std::uint64_t before = copied_;
  Giver giver{from, stopped};
  WEFT_CHECK(round(giver));
  const std::chrono::milliseconds pause = copied_ > before ? kSoon : kLater;
  return next_ = time_.now() + giver.rest.value_or(pause);
}

Status Following::finish(PulledFiles& from, const std::function<bool()>& stopped) {
  Giver giver{from, stopped};
  for (bool moves = true; moves && !giver.is_over();) {
    const std::uint64_t before = copied_;
    WEFT_CHECK(round(giver));
    moves = copied_ > before;
  }
  return {};
}

// The other node receives its files in their order, but for those that arrive into an import (receiving.h): of these it
// may begin any. So a round ends after more files without news than arrive at a time.
Status Following::round(Giver& giver) {
  std::size_t quiet = 0;
  for (File& file : files_) {
    if (file.is_whole) continue;
    if (giver.is_over() || quiet == kQuietMax) break;
    const std::uint64_t before = copied_;
    WEFT_CHECK(follow(file, giver));
    quiet = copied_ > before || file.is_whole ? 0 : quiet + 1;
  }
  return {};
}

Status Following::follow(File& file, Giver& giver) {
  const std::uint64_t size = file.wanted.size;
  for (std::uint64_t first = 0; first * kPieceBytes < size; first += kPulledPiecesMax) {
    const auto state = ask(file, first * kPieceBytes, 0, giver);
    const auto has_bytes = [](std::uint32_t got) { return got > 0; };
    if (!state || std::ranges::none_of(state->got, has_bytes)) break;
    if (!file.received && open_ == kOpenMax) return {};
    if (!file.received) WEFT_CHECK(open(file));
    for (std::size_t i = 0; i < state->got.size() && !giver.is_over(); ++i)
      WEFT_CHECK(copy(file, first + i, state->got[i], giver));
  }
  if (file.received) close_whole(file);
  return {};
}

// Copies the bytes of a piece that this node lacks.
Status Following::copy(File& file, std::uint64_t piece, std::uint32_t got, Giver& giver) {
  Pieces one{static_cast<std::size_t>(piece), 1};
  const std::uint64_t end = piece * kPieceBytes + got;
  while (one.count > 0 && !giver.is_over()) {
    const Range lacking = file.received->missing(one);
    if (lacking.length == 0 || lacking.offset >= end) break;
    const auto part = ask(file, lacking.offset, end - lacking.offset, giver);
    if (!part || part->bytes.empty()) break;
    file.received->doubt();
    WEFT_CHECK(file.received->write(one, part->bytes));
    WEFT_CHECK(file.received->note(one));
    copied_ += part->bytes.size();
  }
  return {};
}

// Returns nothing if the other node has no such file now, or after an error, which ends the round.
std::optional<PulledPart> Following::ask(const File& file, std::uint64_t offset, std::uint64_t length,
                                         Giver& giver) const {
  const auto asked = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kPulledBytesMax));
  const PulledAsk what{key_, file.wanted.path, file.note, file.wanted.size, offset, asked};
  auto part = giver.from.read(what);
  const Status sound = part.ok() ? check_pulled(what, *part) : Status{part.error()};
  if (sound.ok()) return std::move(part).value();
  if (sound.error().code == Errc::busy) giver.rest = kLater;
  if (sound.error().code != Errc::busy && sound.error().code != Errc::not_found) giver.rest = kRest;
  return {};
}

// Every node that waits copies, and most of them never need the bytes to take over: a copy must not fill a disk.
Status Following::check_space(const HubFile& wanted) const {
  if (stat_file(area_.files() / wanted.path).ok()) return {};
  WEFT_TRY(const Fd directory, open_directory(area_.files()));
  const auto disk = disk_space(directory.get());
  if (!disk || disk->available > wanted.size + disk->total / kFreePart) return {};
  return Error{Errc::no_space, fmt::format("{}: expected {} bytes and 1/{} of the disk free, got {} bytes",
                                           area_.files(), wanted.size, kFreePart, disk->available)};
}

Status Following::open(File& file) {
  WEFT_CHECK(check_space(file.wanted));
  WEFT_TRY(file.received, ReceivedFile::open(area_.files(), area_.notes(), file.wanted, HashedBy::import));
  ++open_;
  return {};
}

void Following::close_whole(File& file) {
  if (file.received->received() < file.wanted.size) return;
  file.is_whole = true;
  file.received.reset();
  --open_;
}

}  // namespace weft

#include "pull/served_pulls.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "drafts/pull_area.h"
#include "os/sys.h"
#include "pull/received_note.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

Error gone(const PulledAsk& ask) {
  return Error{Errc::not_found, fmt::format("no such file is being received: \"{}\"", printable(ask.path))};
}

// The note is opened after the file: a file without a note is whole (received_note.h), also if it was verified only
// now. A pull that drops wrong bytes makes another file, and these are then the old one's.
Result<std::vector<std::uint32_t>> received_of(const PulledAsk& ask, const SafePath& path) {
  const auto note = open_file(path, O_RDONLY);
  if (note.ok()) return read_received(*note, path, ask.size, ask.piece(), ask.pieces());
  if (note.error().code != Errc::not_found) return note.error();
  std::vector<std::uint32_t> whole(ask.pieces());
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole[i] = static_cast<std::uint32_t>(piece_length(ask.size, ask.piece() + i));
  return whole;
}

}  // namespace

std::unique_ptr<ServedPulls::Lasting> ServedPulls::begin(const std::string& key) {
  auto lasting = std::make_unique<Lasting>(*this, key);
  const MutexLock lock(mutex_);
  ++served_[key].lasting;
  const auto now = time_.now();
  std::erase_if(served_, [now](const auto& one) { return one.second.lasting == 0 && one.second.until < now; });
  return lasting;
}

void ServedPulls::end(const std::string& key) {
  const MutexLock lock(mutex_);
  Served& ended = served_[key];
  if (--ended.lasting > 0) return;
  ended.until = time_.now() + kServedAfter;
  if (served_.size() <= kServedPullsMax) return;
  const auto until = [](const auto& one) { return one.second.lasting > 0 ? Deadline::max() : one.second.until; };
  served_.erase(std::ranges::min_element(served_, {}, until));
}

bool ServedPulls::serves(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = served_.find(key);
  return found != served_.end() && (found->second.lasting > 0 || time_.now() < found->second.until);
}

Result<PulledPart> ServedPulls::read(const PulledAsk& ask) {
  WEFT_CHECK(check_pulled(ask));
  WEFT_CHECK(check_file_path(ask.path));
  if (!serves(ask.key)) return Error{Errc::not_found, "no such pull runs here"};
  if (reads_.fetch_add(1) >= kServedReadsMax) {
    --reads_;
    return Error{Errc::busy, "this node gives bytes of pulls to others"};
  }
  auto part = read_area(ask);
  --reads_;
  return part;
}

Result<PulledPart> ServedPulls::read_area(const PulledAsk& ask) const {
  const SafePath area = pulls_ / ask.key;
  const SafePath path = area / kPullFiles / ask.path;
  auto opened = open_with_stat(path, O_RDONLY);
  if (!opened.ok() && opened.error().code == Errc::not_found) return gone(ask);
  if (!opened.ok()) return opened.error();
  if (static_cast<std::uint64_t>(opened->st.st_size) != ask.size) return gone(ask);
  PulledPart part;
  WEFT_TRY(part.got, received_of(ask, area / kPullNotes / to_hex(ask.note)));
  const std::uint64_t begin = ask.offset % kPieceBytes;
  const std::uint64_t there = part.got.front() - std::min<std::uint64_t>(part.got.front(), begin);
  part.bytes.resize(std::min<std::uint64_t>(ask.length, there));
  if (!part.bytes.empty()) WEFT_CHECK(read_exact(opened->fd.get(), ask.offset, part.bytes, path));
  return part;
}

}  // namespace weft

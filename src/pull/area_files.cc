#include "pull/area_files.h"

#include <fcntl.h>

#include <algorithm>

#include "base/sha256.h"
#include "drafts/pull_area.h"
#include "os/entries.h"
#include "os/sys.h"
#include "pull/pull_names.h"
#include "pull/received_note.h"
#include "weft/cluster/pulled.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

// Returns the end of the run of received bytes that begins at `offset`.
Result<std::uint64_t> received_end(const Fd& note, const SafePath& path, std::uint64_t size, Range range) {
  const std::uint64_t first = range.offset / kPieceBytes;
  const std::uint64_t last = (std::min(size, range.offset + range.length) - 1) / kPieceBytes;
  WEFT_TRY(const auto received, read_received(note, path, size, first, last - first + 1));
  std::uint64_t end = range.offset;
  for (std::uint64_t piece = first; piece <= last; ++piece) {
    end = std::max(end, piece * kPieceBytes + received[piece - first]);
    if (received[piece - first] < piece_length(size, piece)) break;
  }
  return end;
}

Result<std::size_t> none_if_absent(const Error& error) {
  if (error.code == Errc::not_found) return std::size_t{0};
  return error;
}

}  // namespace

Result<std::size_t> AreaFiles::read(const HubName& repository, const HubFile& file, std::uint64_t offset,
                                    std::span<std::byte> out) const {
  WEFT_CHECK(check_file_path(file.path));
  if (offset >= file.size || out.empty()) return std::size_t{0};
  const SafePath area = pulls_ / hub_pull_key(endpoint_, repository);
  const auto files = open_directory(area / kPullFiles);
  if (!files.ok()) return none_if_absent(files.error());
  const SafePath note_path = area / kPullNotes / to_hex(note_of(file));
  const auto note = open_file(note_path, O_RDONLY);
  if (!note.ok()) return none_if_absent(note.error());
  const auto opened = open_with_stat(area / kPullFiles / file.path, O_RDONLY);
  if (!opened.ok()) return none_if_absent(opened.error());
  if (static_cast<std::uint64_t>(opened->st.st_size) != file.size) return std::size_t{0};
  if (birth_at(files->get(), file.path) < since_ns_) return std::size_t{0};
  WEFT_TRY(const std::uint64_t end, received_end(*note, note_path, file.size, {offset, out.size()}));
  const auto part = out.first(std::min<std::uint64_t>(out.size(), end - offset));
  if (!part.empty()) WEFT_CHECK(read_exact(opened->fd.get(), offset, part, file.path));
  return part.size();
}

}  // namespace weft

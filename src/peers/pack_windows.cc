#include "peers/pack_windows.h"

#include <utility>

#include "os/sys.h"
#include "weft/cluster/exchange.h"

namespace weft {

std::uint64_t size_of(std::span<const Run> segments) {
  std::uint64_t size = 0;
  for (const Run& segment : segments) size += segment.length;
  return size;
}

std::vector<Run> segments_of(std::span<const ChunkRun> runs, std::vector<OpenPlace> places, std::uint64_t skip) {
  std::vector<Run> segments;
  places.front().offset += skip;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::uint64_t length = runs[i].length() - (i == 0 ? skip : 0);
    append_run(segments, {segments.empty() ? 0 : end_of(segments.back()), length, std::move(places[i])});
  }
  return segments;
}

Result<std::vector<std::byte>> copy_of(std::span<const Run> segments) {
  std::vector<std::byte> bytes(size_of(segments));
  std::span<std::byte> rest(bytes);
  for (const auto& [offset, length, place] : segments) {
    WEFT_CHECK(read_exact(place.pack->fd(), place.offset, rest.first(length), kPeerRead));
    rest = rest.subspan(length);
  }
  return bytes;
}

Result<std::vector<std::unique_ptr<WindowMemory>>> windows_on(std::span<const Run> segments) {
  std::vector<std::unique_ptr<WindowMemory>> windows;
  if (size_of(segments) <= kShortHeadBytesMax || segments.size() >= kAnswerWindowsMax) {
    WEFT_TRY(const auto bytes, copy_of(segments));
    WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
    windows.push_back(std::move(window));
    return windows;
  }
  for (const auto& [offset, length, place] : segments) {
    WEFT_TRY(auto window, WindowMemory::of_file(place.pack->fd(), place.offset, length, place.pack));
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace weft

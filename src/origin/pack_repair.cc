#include "origin/pack_repair.h"

#include <fcntl.h>

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "origin/copy.h"
#include "origin/deletions.h"
#include "os/entries.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kCopyStep = 4U << 20U;

using Place = std::pair<std::uint64_t, ContentId>;

Status copy_bytes(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset, std::uint64_t length,
                  std::string_view where) {
  std::vector<std::byte> buffer(std::min(length, kCopyStep));
  for (std::uint64_t at = 0; at < length; at += buffer.size()) {
    const auto bytes = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), length - at));
    WEFT_CHECK(read_exact(from, from_offset + at, bytes, where));
    WEFT_CHECK(write_exact(to, to_offset + at, bytes, where));
  }
  return {};
}

}  // namespace

Result<std::optional<std::string>> OriginPack::check(Progress& progress) {
  const SafePath path = pack_path(origin_, pack_);
  const auto listed = read_toc_of(origin_, pack_);
  const auto fd = open_file(path, O_RDONLY);
  const bool gone = !listed.ok() && listed.error().code == Errc::not_found;
  if (needed_.empty() && (gone || (!fd.ok() && fd.error().code == Errc::not_found)))
    return std::optional<std::string>();
  std::optional<std::string> fault;
  if (!listed.ok()) fault = listed.error().message;
  if (!fd.ok()) fault = fd.error().message;
  std::set<Place> places;
  for (const auto& [id, offset] : needed_) places.emplace(offset, id);
  const std::set<Place> needed = places;
  if (listed.ok())
    for (const PackEntry& entry : listed->entries) places.emplace(entry.offset, entry.id);
  toc_ = PackToc{};
  toc_.pack = pack_;
  if (listed.ok()) toc_.size = listed->size;
  lost_.clear();
  dead_.clear();
  for (const auto& [offset, id] : places) {
    WEFT_CHECK(check_cancelled(progress));
    toc_.size = std::max(toc_.size, offset + id.length);
    auto entry = fd.ok() ? hash_blob(fd->get(), id, offset, progress) : Result<PackEntry>(fd.error());
    bytes_read_ += fd.ok() ? id.length : 0;
    const PackEntry* told = listed.ok() ? find_entry(*listed, id, offset) : nullptr;
    if (entry.ok() && told != nullptr) entry->hint = told->hint;
    if (!fault && !entry.ok()) fault = fmt::format("{}: {}", path, entry.error().message);
    if (!fault && (told == nullptr || told->chunks != entry->chunks))
      fault = fmt::format("{}: expected the {} bytes at {} with their digests", toc_path(origin_, pack_), id.length,
                          offset);
    if (entry.ok())
      toc_.entries.push_back(std::move(entry).value());
    else
      (needed.contains({offset, id}) ? lost_ : dead_).push_back({id, offset, {}});
  }
  return fault;
}

// The .pack goes first: with the former table of contents it is no worse than before.
Status OriginPack::repair(RepairSource& source, Progress& progress) {
  const SafePath written = origin_ / ("tmp/" + random_hex(12));
  Status done = write(written, source, progress);
  if (done.ok()) done = rename_file(written, pack_path(origin_, pack_));
  if (!done.ok()) {
    static_cast<void>(remove_file(written));
    return done;
  }
  WEFT_CHECK(replace_at_origin(origin_, toc_path(origin_, pack_), encode_toc(toc_)));
  return sync_directory(origin_ / "packs");
}

Status OriginPack::write(const SafePath& path, RepairSource& source, Progress& progress) {
  const auto from = open_file(pack_path(origin_, pack_), O_RDONLY);
  if (!from.ok() && !toc_.entries.empty()) return from.error();
  WEFT_CHECK(copy_pack(toc_, from.ok() ? from->get() : -1, path, progress));
  WEFT_TRY(const Fd to, open_file(path, O_RDWR));
  for (const PackEntry& lost : lost_) WEFT_CHECK(fill(to.get(), lost, source, progress));
  for (const PackEntry& dead : dead_)
    if (const Status filled = fill(to.get(), dead, source, progress);
        !filled.ok() && filled.error().code == Errc::cancelled)
      return filled;
  std::ranges::sort(toc_.entries, {}, &PackEntry::offset);
  return sync_file(to.get(), path);
}

Status OriginPack::fill(int to, const PackEntry& lost, RepairSource& source, Progress& progress) {
  Status last;
  for (const bool damaged : {false, true}) {
    const auto place = source.blob(lost.id, damaged, progress);
    if (!place.ok()) return place.error();
    last = copy_bytes(place->pack->fd(), place->offset, to, lost.offset, lost.id.length, pack_name(pack_));
    if (!last.ok()) continue;
    auto entry = hash_blob(to, lost.id, lost.offset, progress);
    if (entry.ok()) return toc_.entries.push_back(std::move(entry).value()), Status{};
    last = entry.error();
  }
  return last;
}

}  // namespace weft

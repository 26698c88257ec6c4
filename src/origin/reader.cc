#include "origin/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/sha256.h"
#include "blobs/read_memory.h"
#include "os/direct_read.h"
#include "os/entries.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

constexpr std::size_t kPlacesBytesMax = 64U << 20U;
constexpr std::size_t kTocsBytesMax = 64U << 20U;
constexpr std::size_t kOpenPacksMax = 64;

Error not_there(std::string_view path, const ContentId& id) {
  return Error{Errc::not_found,
               fmt::format("origin {}: has no {} bytes with digest {}", path, id.length, to_hex(id.root))};
}

}  // namespace

OriginReader::OriginReader(std::string path) : path_(std::move(path)), places_(kPlacesBytesMax), tocs_(kTocsBytesMax) {}

Result<std::vector<std::byte>> OriginReader::manifest(const Digest& digest) {
  WEFT_TRY(const OriginDir dir, this->dir());
  return dir.manifest(digest);
}

Result<std::vector<Digest>> OriginReader::chunks(const Digest& manifest, const ContentId& id) {
  WEFT_TRY(const PlacesPointer places, this->places(manifest));
  auto got = chunks_once(*places, id);
  if (got.ok()) return got;
  forget();
  WEFT_TRY(const PlacesPointer anew, this->places(manifest));
  return chunks_once(*anew, id);
}

// Calls `read` with the places of the runs, and once more after a failure that outdated tables may explain.
template <class T, class Read>
Result<T> OriginReader::read_twice(const Digest& manifest, const std::vector<ChunkRun>& runs, const Read& read) {
  const auto once = [&](const Places& places) -> Result<T> {
    WEFT_TRY(const auto stretches, this->stretches(places, runs));
    return read(stretches);
  };
  WEFT_TRY(const PlacesPointer places, this->places(manifest));
  auto got = once(*places);
  if (got.ok() || got.error().code == Errc::internal) return got;
  const bool dropped = forget();
  if (!dropped && got.error().code != Errc::not_found) return got;  // a missing pack may just have been rewritten
  WEFT_TRY(const PlacesPointer anew, this->places(manifest));
  return once(*anew);
}

Result<SourceBytes> OriginReader::read(const Digest& manifest, const std::vector<ChunkRun>& runs,
                                       const KeptBytes& kept) {
  return read_twice<SourceBytes>(manifest, runs,
                                 [&](const Stretches& stretches) { return read_all(stretches, runs, kept); });
}

Status OriginReader::read_part(const Digest& manifest, const std::vector<ChunkRun>& runs, const OriginPart& part) {
  const auto done = read_twice<bool>(manifest, runs, [&](const Stretches& stretches) -> Result<bool> {
    WEFT_CHECK(read_stretches(stretches, part));
    return true;
  });
  return done.ok() ? Status{} : Status{done.error()};
}

// Drops everything cached. False if none of it was used since the last call: then a retry would fail like the last
// try.
bool OriginReader::forget() {
  std::map<PackId, PackPointer> closed;  // closed without the lock: close may hang
  {
    const std::lock_guard lock(mutex_);
    closed.swap(open_);
    dir_.reset();  // it knows which names of manifests were freed
  }
  places_.clear();
  tocs_.clear();
  return used_kept_.exchange(false);
}

Result<OriginDir> OriginReader::dir() {
  {
    const std::lock_guard lock(mutex_);
    if (dir_) return *dir_;
  }
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(path_));
  const std::lock_guard lock(mutex_);
  dir_ = dir;
  return dir;
}

Result<OriginReader::PlacesPointer> OriginReader::places(const Digest& manifest) {
  if (auto known = places_.find(manifest)) {
    used_kept_ = true;
    return known;
  }
  WEFT_TRY(const OriginDir dir, this->dir());
  WEFT_TRY(Places places, dir.places(manifest));
  auto made = std::make_shared<const Places>(std::move(places));
  places_.put(manifest, made, made->blobs.size() * sizeof made->blobs[0]);
  return PlacesPointer(made);
}

Result<OriginReader::TocPointer> OriginReader::toc(PackId pack) {
  if (auto known = tocs_.find(pack)) return known;
  WEFT_TRY(const OriginDir dir, this->dir());
  WEFT_TRY(PackToc toc, dir.toc(pack));
  auto made = std::make_shared<const PackToc>(std::move(toc));
  tocs_.put(pack, made, memory_bytes(*made));
  return TocPointer(made);
}

Result<OriginReader::PackPointer> OriginReader::pack(PackId pack) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = open_.find(pack); known != open_.end()) {
      used_kept_ = true;
      return known->second;
    }
  }
  WEFT_TRY(const OriginDir dir, this->dir());
  WEFT_TRY(Fd fd, dir.open_pack(pack));
  Fd direct = open_direct(fd.get());
  auto made = std::make_shared<const OpenPack>(OpenPack{std::move(fd), std::move(direct)});
  const std::lock_guard lock(mutex_);
  if (open_.size() >= kOpenPacksMax) open_.erase(open_.begin());
  open_[pack] = made;
  return made;
}

// Reads with O_DIRECT, not through the page cache: this node later reads the bytes from its own store. Nothing if
// that is impossible, or if the page cache has the bytes.
Result<std::optional<SourceBytes>> OriginReader::read_straight(BlobPlace place, std::size_t size) {
  WEFT_TRY(const PackPointer pack, this->pack(place.pack));
  std::optional<SourceBytes> out;
  if (!pack->direct.valid() || all_cached(pack->fd.get(), place.offset, size)) return out;
  const DirectBlocks blocks = direct_blocks(place.offset, size);
  const auto memory = take_read_memory(blocks.length);
  const auto got = read_direct(pack->direct.get(), blocks.begin, {memory.get(), blocks.length});
  const std::uint64_t before = place.offset - blocks.begin;
  if (got && *got >= before + size) out = SourceBytes{{memory, memory.get() + before}, size, {}};
  return out;
}

Status OriginReader::read_run(BlobPlace place, std::span<std::byte> out, bool keeps_pages) {
  WEFT_TRY(const PackPointer pack, this->pack(place.pack));
  const int fd = pack->fd.get();
  const std::string where = origin_pack_name(path_, place.pack);
  WEFT_TRY(const std::size_t got, read_some(fd, place.offset, out, where));
  // The next read reuses these pages, which is cheaper than fresh ones.
  if (!keeps_pages) forget_pages(fd, place.offset, out.size());
  if (got == out.size()) return {};
  return Error{Errc::corrupt, fmt::format("{}: expected {} bytes at {}, got {}", where, out.size(), place.offset, got)};
}

// Converts runs to places in packs. Adjacent runs become one read.
Result<OriginReader::Stretches> OriginReader::stretches(const Places& places, const std::vector<ChunkRun>& runs) const {
  Stretches out;
  for (const ChunkRun& run : runs) {
    const auto place = places.find(run.id);
    if (!place) return not_there(path_, run.id);
    append_run(out, {{place->pack, place->offset + run.offset()}, run.length()});
  }
  return out;
}

// Reads the part of the bytes of all stretches.
Status OriginReader::read_stretches(const Stretches& stretches, const OriginPart& part) {
  std::size_t at = 0;  // of the stretch, in the bytes of all
  for (const auto& [place, length] : stretches) {
    const std::size_t begin = std::max(part.begin, at);
    const std::size_t end = std::min<std::size_t>(part.end, at + length);
    if (begin < end)
      WEFT_CHECK(read_run({place.pack, place.offset + (begin - at)}, {part.memory.get() + begin, end - begin},
                          length < kLargeOriginRead));
    at += length;
  }
  return {};
}

Result<SourceBytes> OriginReader::read_all(const Stretches& stretches, const std::vector<ChunkRun>& runs,
                                           const KeptBytes& kept) {
  std::size_t size = 0;
  for (const auto& [place, length] : stretches) size += length;
  if (size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", size)};
  std::optional<SourceBytes> out;
  if (stretches.size() == 1 && size >= kLargeOriginRead && kept.bytes == 0) {
    WEFT_TRY(out, read_straight(stretches[0].place, size));
  }
  if (!out) {
    out = SourceBytes{take_read_memory(size), size, {}};
    if (kept.bytes > 0) std::memcpy(out->memory.get(), kept.memory.get(), kept.bytes);
    WEFT_CHECK(read_stretches(stretches, {out->memory, kept.bytes, size}));
  }
  out->givers = origin_givers(runs, kept);
  return *std::move(out);
}

Result<std::vector<Digest>> OriginReader::chunks_once(const Places& places, const ContentId& id) {
  const auto place = places.find(id);
  if (!place) return not_there(path_, id);
  WEFT_TRY(const TocPointer toc, this->toc(place->pack));
  const PackEntry* listed = find_entry(*toc, id, place->offset);
  if (listed == nullptr) return not_there(path_, id);
  const std::vector<Digest>& digests = listed->chunks;
  if (digests.size() == chunk_count(id.length) && tree_root(id.length, digests) == id.root) return digests;
  return Error{Errc::corrupt, fmt::format("{}: other chunk digests than those of the {} bytes with digest {}",
                                          origin_toc_name(path_, place->pack), id.length, to_hex(id.root))};
}

// The origin is the only giver: after a wrong chunk, refuted() drops its open files and tables.
std::vector<std::uint32_t> origin_givers(std::span<const ChunkRun> runs, const KeptBytes& kept) {
  std::vector<std::uint32_t> givers;
  for (const RunChunk& chunk : chunks_of(runs)) givers.push_back(chunk.at < kept.bytes ? kSeveralGivers : 0);
  return givers;
}

}  // namespace weft

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/bounded_calls.h"
#include "base/limits.h"
#include "base/sys.h"
#include "node/origin_dir.h"
#include "node/vfs_cache.h"
#include "store/pack_file.h"
#include "weft/origin.h"

namespace weft {
namespace {

constexpr std::size_t kPlacesBytesMax = 64U << 20U;
constexpr std::size_t kTocBytesMax = 64U << 20U;
constexpr std::size_t kOpenPacksMax = 64;

std::uint64_t key_of(const Digest& digest) {
  std::uint64_t key = 0;
  std::memcpy(&key, digest.bytes.data(), sizeof key);
  return key;
}

// One origin as its readers share it. Everything here may hang; it is called on threads that can be left behind.
class OriginReader {
 public:
  explicit OriginReader(std::string path) : path_(std::move(path)) {}

  Result<std::vector<std::byte>> manifest(const Digest& digest) {
    WEFT_TRY(const OriginDir dir, this->dir());
    return dir.manifest(digest);
  }
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id);
  Result<SourceBytes> read(const Digest& manifest, const std::vector<ChunkRun>& runs);

 private:
  using PlacesPointer = std::shared_ptr<const Places>;
  using TocPointer = std::shared_ptr<const PackToc>;
  Result<OriginDir> dir();
  Result<PlacesPointer> places(const Digest& manifest);
  Result<TocPointer> toc(PackId pack);
  Result<std::shared_ptr<const Fd>> pack(PackId pack);
  Status read_run(BlobPlace place, std::span<std::byte> out);

  const std::string path_;
  std::mutex mutex_;
  std::optional<OriginDir> dir_;                      // guarded by mutex_
  std::map<PackId, std::shared_ptr<const Fd>> open_;  // guarded by mutex_
  LruCache<Places> places_{kPlacesBytesMax};
  LruCache<PackToc> tocs_{kTocBytesMax};
};

Result<OriginDir> OriginReader::dir() {
  {
    const std::lock_guard lock(mutex_);
    if (dir_) return *dir_;
  }
  WEFT_TRY(OriginDir dir, OriginDir::open(path_));
  const std::lock_guard lock(mutex_);
  dir_ = dir;
  return dir;
}

Result<OriginReader::PlacesPointer> OriginReader::places(const Digest& manifest) {
  if (auto known = places_.find(key_of(manifest)); known && known->manifest == manifest) return known;
  WEFT_TRY(const OriginDir dir, this->dir());
  WEFT_TRY(Places places, dir.places(manifest));
  auto made = std::make_shared<const Places>(std::move(places));
  places_.put(key_of(manifest), made, made->blobs.size() * sizeof made->blobs[0]);
  return PlacesPointer(made);
}

Result<OriginReader::TocPointer> OriginReader::toc(PackId pack) {
  if (auto known = tocs_.find(pack)) return known;
  WEFT_TRY(const OriginDir dir, this->dir());
  WEFT_TRY(PackToc toc, dir.toc(pack));
  std::size_t bytes = toc.entries.size() * sizeof(PackEntry);
  for (const PackEntry& entry : toc.entries) bytes += entry.chunks.size() * sizeof(Digest);
  auto made = std::make_shared<const PackToc>(std::move(toc));
  tocs_.put(pack, made, bytes);
  return TocPointer(made);
}

Result<std::shared_ptr<const Fd>> OriginReader::pack(PackId pack) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = open_.find(pack); known != open_.end()) return known->second;
  }
  WEFT_TRY(const OriginDir dir, this->dir());
  WEFT_TRY(Fd fd, dir.open_pack(pack));
  auto made = std::make_shared<const Fd>(std::move(fd));
  const std::lock_guard lock(mutex_);
  if (open_.size() >= kOpenPacksMax) open_.erase(open_.begin());
  open_[pack] = made;
  return made;
}

Error not_there(std::string_view path, const ContentId& id) {
  return Error{Errc::not_found,
               fmt::format("origin {}: has no {} bytes with digest {}", path, id.length, to_hex(id.root))};
}

Result<std::vector<Digest>> OriginReader::chunks(const Digest& manifest, const ContentId& id) {
  WEFT_TRY(const PlacesPointer places, this->places(manifest));
  const auto place = places->find(id);
  if (!place) return not_there(path_, id);
  WEFT_TRY(const TocPointer toc, this->toc(place->pack));
  const auto entry = std::lower_bound(toc->entries.begin(), toc->entries.end(), place->offset,
                                      [](const PackEntry& one, std::uint64_t at) { return one.offset < at; });
  if (entry == toc->entries.end() || entry->id != id) return not_there(path_, id);
  return entry->chunks;
}

Status OriginReader::read_run(BlobPlace place, std::span<std::byte> out) {
  WEFT_TRY(const auto fd, pack(place.pack));
  const std::string where = pack_path(path_, place.pack);
  WEFT_TRY(const std::size_t got, read_some(fd->get(), place.offset, out, where));
  if (got == out.size()) return {};
  return Error{Errc::corrupt, fmt::format("{}: expected {} bytes at {}, got {}", where, out.size(), place.offset, got)};
}

// Runs that go on where the one before ends are one read.
Result<SourceBytes> OriginReader::read(const Digest& manifest, const std::vector<ChunkRun>& runs) {
  WEFT_TRY(const PlacesPointer places, this->places(manifest));
  SourceBytes out;
  for (const ChunkRun& run : runs) out.size += run.length();
  if (out.size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", out.size)};
  out.memory = std::make_unique_for_overwrite<std::byte[]>(out.size);
  std::span<std::byte> rest(out.memory.get(), out.size);
  BlobPlace begin;
  std::size_t length = 0;
  for (const ChunkRun& run : runs) {
    const auto place = places->find(run.id);
    if (!place) return not_there(path_, run.id);
    const BlobPlace next{place->pack, place->offset + run.offset()};
    if (length > 0 && (next.pack != begin.pack || next.offset != begin.offset + length)) {
      WEFT_CHECK(read_run(begin, rest.first(length)));
      rest = rest.subspan(length);
      length = 0;
    }
    if (length == 0) begin = next;
    length += run.length();
  }
  if (length > 0) WEFT_CHECK(read_run(begin, rest.first(length)));
  return out;
}

class OriginSource final : public BlobSource {
 public:
  OriginSource(std::string path, unsigned threads)
      : calls_(std::make_shared<BoundedCalls>("origin " + path, threads)),
        reader_(std::make_shared<OriginReader>(std::move(path))) {}

  std::string_view name() const override { return "origin"; }
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override {
    return calls_->call<std::vector<std::byte>>([reader = reader_, digest] { return reader->manifest(digest); },
                                                deadline);
  }
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override {
    return calls_->call<std::vector<Digest>>([reader = reader_, manifest, id] { return reader->chunks(manifest, id); },
                                             deadline);
  }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline) override {
    return calls_->call<SourceBytes>(
        [reader = reader_, manifest, wanted = std::vector(runs.begin(), runs.end())] {
          return reader->read(manifest, wanted);
        },
        deadline);
  }

 private:
  std::shared_ptr<BoundedCalls> calls_;
  std::shared_ptr<OriginReader> reader_;  // shared with calls that hang
};

}  // namespace

std::shared_ptr<BlobSource> origin_source(std::string path, const OriginOptions& options) {
  return std::make_shared<OriginSource>(std::move(path), options.threads);
}

Result<OriginTotals> origin_totals(const std::string& path, std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  return calls.call<OriginTotals>(
      [path]() -> Result<OriginTotals> {
        WEFT_TRY(const OriginDir dir, OriginDir::open(path));
        return dir.totals();
      },
      deadline_in(patience));
}

}  // namespace weft

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/bounded_calls.h"
#include "base/lru_cache.h"
#include "base/sha256.h"
#include "blobs/read_memory.h"
#include "diskformat/toc.h"
#include "origin/dir.h"
#include "os/direct_read.h"
#include "os/entries.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "weft/bytes/run_list.h"
#include "weft/cluster/origin.h"

namespace weft {
namespace {

constexpr std::size_t kPlacesBytesMax = 64U << 20U;
constexpr std::size_t kTocsBytesMax = 64U << 20U;
constexpr std::size_t kOpenPacksMax = 64;
constexpr auto kForgetPatience = std::chrono::seconds(1);
constexpr unsigned kSmallReads = 4;        // at once; their threads may be left behind in calls that hang
constexpr unsigned kLargeReads = 2;        // at once
constexpr std::size_t kLarge = 1U << 20U;  // reads of this size leave no cached pages and have their own threads

struct OpenPack {
  Fd fd;
  Fd direct;  // for O_DIRECT; invalid if unsupported
};

// A run of bytes of one pack.
struct Stretch {
  BlobPlace place;
  std::uint64_t length = 0;
};

bool goes_on(const Stretch& last, const Stretch& next) {
  return last.place.pack == next.place.pack && last.place.offset + last.length == next.place.offset;
}

Error not_there(std::string_view path, const ContentId& id) {
  return Error{Errc::not_found,
               fmt::format("origin {}: has no {} bytes with digest {}", path, id.length, to_hex(id.root))};
}

// Reads from one origin; shared by all threads. Its cached descriptors and tables may predate a repair or a remount, so
// it drops them all after a failed read and tries again. Every call may hang: callers use threads that can be
// abandoned.
class OriginReader {
 public:
  explicit OriginReader(std::string path) : path_(std::move(path)) {}

  Result<std::vector<std::byte>> manifest(const Digest& digest) {
    WEFT_TRY(const OriginDir dir, this->dir());
    return dir.manifest(digest);
  }

  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id) {
    WEFT_TRY(const PlacesPointer places, this->places(manifest));
    auto got = chunks_once(*places, id);
    if (got.ok()) return got;
    forget();
    WEFT_TRY(const PlacesPointer anew, this->places(manifest));
    return chunks_once(*anew, id);
  }

  // Returns the bytes of the runs: the first ones from `kept`, the rest from the origin.
  Result<SourceBytes> read(const Digest& manifest, const std::vector<ChunkRun>& runs, const KeptBytes& kept) {
    WEFT_TRY(const PlacesPointer places, this->places(manifest));
    auto got = read_once(*places, runs, kept);
    if (got.ok() || got.error().code == Errc::internal) return got;
    const bool dropped = forget();
    if (!dropped && got.error().code != Errc::not_found) return got;  // a missing pack may just have been rewritten
    WEFT_TRY(const PlacesPointer anew, this->places(manifest));
    return read_once(*anew, runs, kept);
  }

  // Drops everything cached. False if none of it was used since the last call: then a retry would fail like the last
  // try.
  bool forget() {
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

 private:
  using Stretches = std::vector<Stretch>;
  using PlacesPointer = std::shared_ptr<const Places>;

  Result<OriginDir> dir() {
    {
      const std::lock_guard lock(mutex_);
      if (dir_) return *dir_;
    }
    WEFT_TRY(OriginDir dir, OriginDir::open_existing(path_));
    const std::lock_guard lock(mutex_);
    dir_ = dir;
    return dir;
  }

  Result<PlacesPointer> places(const Digest& manifest) {
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

  using TocPointer = std::shared_ptr<const PackToc>;

  Result<TocPointer> toc(PackId pack) {
    if (auto known = tocs_.find(pack)) return known;
    WEFT_TRY(const OriginDir dir, this->dir());
    WEFT_TRY(PackToc toc, dir.toc(pack));
    auto made = std::make_shared<const PackToc>(std::move(toc));
    tocs_.put(pack, made, memory_bytes(*made));
    return TocPointer(made);
  }

  using PackPointer = std::shared_ptr<const OpenPack>;

  Result<PackPointer> pack(PackId pack) {
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
  Result<std::optional<SourceBytes>> read_straight(BlobPlace place, std::size_t size) {
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

  Status read_run(BlobPlace place, std::span<std::byte> out) {
    WEFT_TRY(const PackPointer pack, this->pack(place.pack));
    const int fd = pack->fd.get();
    const std::string where = origin_pack_name(path_, place.pack);
    WEFT_TRY(const std::size_t got, read_some(fd, place.offset, out, where));
    // The next read reuses these pages, which is cheaper than fresh ones.
    if (out.size() >= kLarge) forget_pages(fd, place.offset, out.size());
    if (got == out.size()) return {};
    return Error{Errc::corrupt,
                 fmt::format("{}: expected {} bytes at {}, got {}", where, out.size(), place.offset, got)};
  }

  // Converts runs to places in packs. Adjacent runs become one read.
  Result<Stretches> stretches(const Places& places, const std::vector<ChunkRun>& runs) const {
    Stretches out;
    for (const ChunkRun& run : runs) {
      const auto place = places.find(run.id);
      if (!place) return not_there(path_, run.id);
      append_run(out, {{place->pack, place->offset + run.offset()}, run.length()});
    }
    return out;
  }

  Result<SourceBytes> read_stretches(const Stretches& stretches, std::size_t size, const KeptBytes& kept) {
    if (stretches.size() == 1 && size >= kLarge && kept.bytes == 0) {
      WEFT_TRY(auto straight, read_straight(stretches[0].place, size));
      if (straight) return *std::move(straight);
    }
    SourceBytes out;
    out.memory = take_read_memory(size);
    out.size = size;
    if (kept.bytes > 0) std::memcpy(out.memory.get(), kept.memory.get(), kept.bytes);
    std::size_t skip = kept.bytes;
    std::span<std::byte> rest(out.memory.get(), size);
    for (const auto& [place, length] : stretches) {
      const std::size_t here = std::min<std::size_t>(skip, length);
      if (here < length) WEFT_CHECK(read_run({place.pack, place.offset + here}, rest.first(length).subspan(here)));
      rest = rest.subspan(length);
      skip -= here;
    }
    return out;
  }

  Result<SourceBytes> read_once(const Places& places, const std::vector<ChunkRun>& runs, const KeptBytes& kept) {
    WEFT_TRY(const auto stretches, this->stretches(places, runs));
    std::size_t size = 0;
    for (const auto& [place, length] : stretches) size += length;
    if (size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", size)};
    WEFT_TRY(SourceBytes out, read_stretches(stretches, size, kept));
    // The origin is the only giver: after a wrong chunk, refuted() drops its open files and tables.
    for (const RunChunk& chunk : chunks_of(runs)) out.givers.push_back(chunk.at < kept.bytes ? kSeveralGivers : 0);
    return out;
  }

  Result<std::vector<Digest>> chunks_once(const Places& places, const ContentId& id) {
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

  const std::string path_;
  std::mutex mutex_;
  std::optional<OriginDir> dir_;        // guarded by mutex_
  std::map<PackId, PackPointer> open_;  // guarded by mutex_
  std::atomic<bool> used_kept_ = false;
  LruCache<Places, Digest> places_{kPlacesBytesMax};
  LruCache<PackToc> tocs_{kTocsBytesMax};
};

class OriginSource final : public BlobSource {
 public:
  explicit OriginSource(std::string path)
      : calls_(std::make_shared<BoundedCalls>("origin " + path, kSmallReads)),
        large_reads_(std::make_shared<BoundedCalls>("origin " + path, kLargeReads)),
        reader_(std::make_shared<OriginReader>(std::move(path))) {}

  std::string_view name() const override { return "origin"; }
  bool reads_named() const override { return true; }
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override {
    return calls_->call<std::vector<std::byte>>([reader = reader_, digest] { return reader->manifest(digest); },
                                                deadline);
  }
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override {
    return calls_->call<std::vector<Digest>>([reader = reader_, manifest, id] { return reader->chunks(manifest, id); },
                                             deadline);
  }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    std::uint64_t size = 0;
    for (const ChunkRun& run : runs) size += run.length();
    auto& calls = size < kLarge ? calls_ : large_reads_;
    return calls->call<SourceBytes>([reader = reader_, manifest, wanted = std::vector(runs.begin(), runs.end()),
                                     kept = aid.kept] { return reader->read(manifest, wanted, kept); },
                                    deadline);
  }
  bool refuted(std::uint32_t /*giver*/) override {
    const auto again =
        calls_->call<bool>([reader = reader_] { return Result<bool>(reader->forget()); }, deadline_in(kForgetPatience));
    return again.ok() && *again;
  }

 private:
  std::shared_ptr<BoundedCalls> calls_;
  std::shared_ptr<BoundedCalls> large_reads_;  // few threads: reads finish one by one instead of all late
  std::shared_ptr<OriginReader> reader_;       // shared with calls that hang
};

Status check_usable(const std::string& path, const std::string& known, const std::string& cluster) {
  if (const auto st = stat_file(path); !st.ok()) return Error{st.error().code, "origin " + st.error().message};
  const auto there = OriginDir::open_existing(path);
  const bool none = !there.ok() && there.error().code == Errc::not_found;
  if (!there.ok() && !none) return there.error();
  if (!known.empty() || (there.ok() && !cluster.empty())) WEFT_CHECK(OriginDir::open_known(path, known, cluster));
  const Status writable = may_write_directory(none ? path : path + "/tmp");
  return writable.ok() ? writable : Status{Error{writable.error().code, "origin " + writable.error().message}};
}

}  // namespace

Status check_origin(const std::string& path, const std::string& known, const std::string& cluster,
                    std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  const auto checked = calls.call<bool>(
      [path, known, cluster]() -> Result<bool> {
        WEFT_CHECK(check_usable(path, known, cluster));
        return true;
      },
      deadline_in(patience));
  return checked.ok() ? Status{} : Status{checked.error()};
}

std::shared_ptr<BlobSource> origin_source(std::string path) {
  return std::make_shared<OriginSource>(std::move(path));
}

Result<bool> is_at_origin(const std::string& path, const std::string& known, const std::string& cluster,
                          const Digest& manifest, std::chrono::milliseconds patience) {
  WEFT_TRY(const auto lacking, lacking_at_origin(path, known, cluster, {manifest}, patience));
  return lacking.empty();
}

Result<std::vector<Digest>> lacking_at_origin(const std::string& path, const std::string& known,
                                              const std::string& cluster, std::vector<Digest> manifests,
                                              std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  return calls.call<std::vector<Digest>>(
      [path, known, cluster, asked = std::move(manifests)]() -> Result<std::vector<Digest>> {
        WEFT_TRY(const OriginDir dir, OriginDir::open_known(path, known, cluster));
        std::vector<Digest> lacking = asked;
        std::erase_if(lacking, [&](const Digest& one) { return dir.holds(one); });
        std::ranges::sort(lacking);
        return lacking;
      },
      deadline_in(patience));
}

Result<OriginTotals> origin_totals(const std::string& path, std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  return calls.call<OriginTotals>(
      [path]() -> Result<OriginTotals> {
        WEFT_TRY(const OriginDir dir, OriginDir::open_existing(path));
        return dir.totals();
      },
      deadline_in(patience));
}

}  // namespace weft

// Reads bytes of one origin, for origin_source().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/lru_cache.h"
#include "diskformat/toc.h"
#include "origin/dir.h"
#include "weft/bytes/source.h"
#include "weft/result.h"

namespace weft {

// Reads of adjacent bytes of this size leave no cached pages.
inline constexpr std::size_t kLargeOriginRead = 1U << 20U;

// A run of bytes of one pack of the origin.
struct OriginStretch {
  BlobPlace place;
  std::uint64_t length = 0;
};
inline bool goes_on(const OriginStretch& last, const OriginStretch& next) {
  return last.place.pack == next.place.pack && last.place.offset + last.length == next.place.offset;
}

// The bytes [begin, end) of all runs of a read, in memory that has the bytes of all runs.
struct OriginPart {
  std::shared_ptr<std::byte[]> memory;
  std::size_t begin = 0, end = 0;
};

// Shared by all threads. Its cached descriptors and tables may predate a repair or a remount, so it drops them all
// after a failed read and tries again. Every call may hang: callers use threads that can be abandoned.
class OriginReader {
 public:
  explicit OriginReader(std::string path);

  Result<std::vector<std::byte>> manifest(const Digest& digest);
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id);
  // Returns the bytes of the runs: the first ones from `kept`, the rest from the origin.
  Result<SourceBytes> read(const Digest& manifest, const std::vector<ChunkRun>& runs, const KeptBytes& kept);
  // Reads a part of the bytes of the runs, through the page cache.
  Status read_part(const Digest& manifest, const std::vector<ChunkRun>& runs, const OriginPart& part);
  // Drops everything cached. False if none of it was used since the last call: then a retry would fail like the last
  // try.
  bool forget();

 private:
  struct OpenPack {
    Fd fd;
    Fd direct;  // for O_DIRECT; invalid if unsupported
  };
  using Stretches = std::vector<OriginStretch>;
  using PlacesPointer = std::shared_ptr<const Places>;
  using TocPointer = std::shared_ptr<const PackToc>;
  using PackPointer = std::shared_ptr<const OpenPack>;

  template <class T, class Read>
  Result<T> read_twice(const Digest& manifest, const std::vector<ChunkRun>& runs, const Read& read);
  Result<OriginDir> dir();
  Result<PlacesPointer> places(const Digest& manifest);
  Result<TocPointer> toc(PackId pack);
  Result<PackPointer> pack(PackId pack);
  Result<std::optional<SourceBytes>> read_straight(BlobPlace place, std::size_t size);
  Status read_run(BlobPlace place, std::span<std::byte> out, bool keeps_pages);
  Result<Stretches> stretches(const Places& places, const std::vector<ChunkRun>& runs) const;
  Status read_stretches(const Stretches& stretches, const OriginPart& part);
  Result<SourceBytes> read_all(const Stretches& stretches, const std::vector<ChunkRun>& runs, const KeptBytes& kept);
  Result<std::vector<Digest>> chunks_once(const Places& places, const ContentId& id);

  const std::string path_;
  std::mutex mutex_;
  std::optional<OriginDir> dir_;        // guarded by mutex_
  std::map<PackId, PackPointer> open_;  // guarded by mutex_
  std::atomic<bool> used_kept_ = false;
  LruCache<Places, Digest> places_;
  LruCache<PackToc> tocs_;
};

// Returns the givers of the chunks of a read: the origin, or several for chunks that begin in `kept`.
std::vector<std::uint32_t> origin_givers(std::span<const ChunkRun> runs, const KeptBytes& kept);

}  // namespace weft

#include "fetch/requests/adopt.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/sha256.h"
#include "os/holes.h"
#include "os/sys.h"
#include "weft/bytes/cold.h"
#include "weft/model/manifest.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::uint64_t kAddedAtOnce = 1U << 30U;  // bytes of one FetchPack::add()

class Adopting {
 public:
  Adopting(Store& store, FetchedCache& cache, Fetcher& fetcher, const SafePath& files, Progress& progress)
      : store_(store), cache_(cache), fetcher_(fetcher), files_(files), progress_(progress) {}

  Status take(const File& file) {
    if (file.size < kAdoptedFileMin) return {};
    const auto there = stat_file(files_ / file.path);
    if (!there.ok() || !S_ISREG(there->st_mode) || static_cast<std::uint64_t>(there->st_size) != file.size) return {};
    WEFT_TRY(const auto absent, absent_of(file));
    if (absent.empty()) return {};
    progress_.phase(fmt::format("keeping {}", file.path));
    WEFT_TRY(const auto pack, cache_.take_file(files_ / file.path));
    WEFT_CHECK(fetcher_.make_room(*pack, file.size));
    std::vector<FetchedBlob> blobs;
    std::uint64_t bytes = 0;
    for (const Extent& extent : absent) {
      WEFT_TRY(auto blob, blob_at(*pack, extent));
      progress_.advance(extent.id.length);
      if (!blob) continue;
      bytes += extent.id.length;
      blobs.push_back(*std::move(blob));
      if (bytes >= kAddedAtOnce) WEFT_CHECK(add(*pack, blobs, bytes));
    }
    return add(*pack, blobs, bytes);
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  Result<std::vector<Extent>> absent_of(const File& file) {
    std::vector<Extent> absent;
    std::set<ContentId> seen;
    Renewed renewed(store_);
    for (const Extent& extent : file.extents) {
      if (extent.id.length == 0 || !seen.insert(extent.id).second) continue;
      WEFT_TRY(Snapshot * now, renewed.get());
      const auto place = now->find_blob(extent.id);
      if (!place.ok() && place.error().code == Errc::absent) absent.push_back(extent);
    }
    return absent;
  }

  // Returns nothing if the pack lacks bytes of the blob or has wrong ones.
  Result<std::optional<FetchedBlob>> blob_at(const FetchPack& pack, const Extent& extent) {
    FetchedBlob blob{extent.id, extent.offset, {}};
    std::vector<std::byte> chunk(std::min(kDigestChunk, extent.id.length));
    for (std::uint64_t at = 0; at < extent.id.length; at += kDigestChunk) {
      WEFT_CHECK(check_cancelled(progress_));
      const auto part = std::span(chunk).first(std::min(kDigestChunk, extent.id.length - at));
      if (has_no_data(pack.fd(), extent.offset + at, part.size())) return std::optional<FetchedBlob>();
      WEFT_CHECK(read_exact(pack.fd(), extent.offset + at, part, "a file of a pull"));
      blob.chunks.push_back(sha256(part));
    }
    if (tree_root(extent.id.length, blob.chunks) != extent.id.root) return std::optional<FetchedBlob>();
    return std::optional(std::move(blob));
  }

  Status add(FetchPack& pack, std::vector<FetchedBlob>& blobs, std::uint64_t& bytes) {
    if (blobs.empty()) return {};
    WEFT_CHECK(pack.add(blobs));
    bytes_ += bytes;
    bytes = 0;
    blobs.clear();
    return {};
  }

  Store& store_;
  FetchedCache& cache_;
  Fetcher& fetcher_;
  const SafePath& files_;
  Progress& progress_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<std::uint64_t> adopt_files(Store& store, FetchedCache& cache, Fetcher& fetcher, const VersionRow& row,
                                  const SafePath& files, Progress& progress) {
  WEFT_CHECK(fetcher.resolve(row.id));
  WEFT_TRY(const VersionHold hold, store.hold_version(row.id));
  WEFT_TRY(const auto bytes, store.open_manifest(row.manifest));
  WEFT_TRY(const Manifest manifest, decode_manifest(bytes->bytes()));
  Adopting adopting(store, cache, fetcher, files, progress);
  for (const File& file : manifest.files) {
    WEFT_CHECK(check_cancelled(progress));
    const Status taken = adopting.take(file);
    if (!taken.ok() && taken.error().code == Errc::no_space) break;  // the rest passes to readers from other nodes
    WEFT_CHECK(taken);
  }
  return adopting.bytes();
}

}  // namespace weft

// The units of one version (swarm/units.h) as chunks of its blobs. The chunks are numbered through all distinct blobs
// as they first appear, file by file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "swarm/units.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/deadline.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Immutable.
class VersionUnits {
 public:
  explicit VersionUnits(const Manifest& manifest);

  std::uint32_t count() const { return units_.count(); }
  const Units& units() const { return units_; }
  const std::vector<ChunkRun>& blobs() const { return blobs_; }  // all chunks of each blob, in the order of the numbers
  // The chunks of a unit below count(): one run for each blob, in the order of the numbers.
  std::vector<ChunkRun> runs(std::uint32_t unit) const;
  std::uint64_t bytes(std::uint32_t unit) const;

  struct Numbers {
    std::uint64_t first = 0, count = 0;
  };
  // The numbers of the chunks of a run. Nothing if the version lacks one of them, or the run is empty.
  std::optional<Numbers> numbers_of(const ChunkRun& run) const;
  // The first and the last unit with chunks of a run. Nothing as above.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> units_of(const ChunkRun& run) const;

 private:
  Units units_{0};
  std::vector<ChunkRun> blobs_;        // without empty blobs
  std::vector<std::uint64_t> firsts_;  // the number of each one's first chunk
  std::unordered_map<ContentId, std::uint64_t> first_of_;
};

// Returns the units of the version with a manifest. Any thread.
using FindUnits = std::function<Result<std::shared_ptr<const VersionUnits>>(const Digest& manifest)>;

// The units of versions whose manifests are local. Versions in use are read once. Any thread.
class LocalVersionUnits {
 public:
  // A version with larger units takes no part in a swarm: one answer opens at most kAnswerBytesMax bytes.
  static constexpr std::uint64_t kChunksPerUnitMax = 64;

  explicit LocalVersionUnits(Store& store) : store_(store) {}  // which outlives this

  // Reads the disk. Errors as Store::open_manifest. Errc::unsupported: too many chunks.
  Result<std::shared_ptr<const VersionUnits>> find(const Digest& manifest);
  // Reads a manifest that is not local from another source. Errors as BlobSource::manifest. Errc::corrupt: it has
  // another digest.
  Result<std::shared_ptr<const VersionUnits>> find_at(BlobSource& source, const Digest& manifest, Deadline deadline);

 private:
  std::shared_ptr<const VersionUnits> known(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  Result<std::shared_ptr<const VersionUnits>> keep(const Digest& manifest, std::span<const std::byte> bytes)
      WEFT_EXCLUDES(mutex_);

  Store& store_;
  Mutex mutex_;
  std::vector<std::pair<Digest, std::weak_ptr<const VersionUnits>>> found_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft

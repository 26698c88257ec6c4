// A source whose answers are verified before they are returned: manifests against their digest, chunks against digests
// that hash to their blob's root, sizes against the request. Any thread.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "weft/bytes/source.h"

namespace weft {

struct VerifiedBytes {
  SourceBytes bytes;
  std::vector<Digest> digests;  // of all chunks, run after run
};

// Returns the digests of all chunks of all runs. `bytes` holds the runs one after the other.
std::vector<Digest> digests_of(std::span<const ChunkRun> runs, std::span<const std::byte> bytes);

class VerifiedSource {
 public:
  explicit VerifiedSource(std::shared_ptr<BlobSource> source) : source_(std::move(source)) {}

  std::string_view name() const { return source_->name(); }
  // As BlobSource; Errc::corrupt if the bytes do not verify.
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline);
  Result<VerifiedBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline, ReadAid& aid);
  Result<VerifiedBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline) {
    ReadAid none;
    return read(manifest, runs, deadline, none);
  }
  BlobSource& unverified() const { return *source_; }

  using Proof = std::shared_ptr<const std::vector<Digest>>;
  // Returns the digests of all chunks of a blob, if they were requested lately; else null. A blob of one chunk has
  // none.
  Proof known_proof(const ContentId& id);

 private:
  Result<Proof> proof(const Digest& manifest, const ContentId& id, Deadline deadline) WEFT_EXCLUDES(mutex_);
  Result<Proof> ask_for_proof(const Digest& manifest, const ContentId& id, Deadline deadline) WEFT_EXCLUDES(mutex_);
  std::future<void> begin_proofs(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline);
  struct Wrong {
    std::size_t chunk = 0;  // number in the run
    Error error;
  };
  Result<std::optional<Wrong>> check(const Digest& manifest, const ChunkRun& run, std::span<const Digest> digests,
                                     Deadline deadline);
  Result<VerifiedBytes> read_once(const Digest& manifest, std::span<const ChunkRun> runs, Deadline::duration patience,
                                  ReadAid& aid, bool& again);
  bool blame(const SourceBytes& got, std::size_t at, std::size_t run, std::uint64_t number, ReadAid& aid);
  Error wrong(const ContentId& id, std::string_view what) const;

  const std::shared_ptr<BlobSource> source_;
  Mutex mutex_;
  std::unordered_map<ContentId, Proof> proofs_ WEFT_GUARDED_BY(mutex_);  // of blobs that were read lately
  std::size_t proof_digests_ WEFT_GUARDED_BY(mutex_) = 0;                // in all of them
  std::unordered_set<ContentId> asked_ WEFT_GUARDED_BY(mutex_);          // blobs whose proof is being requested
  Condition answered_;
};

}  // namespace weft

// A source whose every answer is checked before anybody sees it: manifests against their digest, chunks against
// digests that make their blob's root, sizes against what was asked for. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/source.h"

namespace weft {

struct VerifiedBytes {
  SourceBytes bytes;
  std::vector<Digest> digests;  // of its chunks, run after run
};

class VerifiedSource {
 public:
  explicit VerifiedSource(std::shared_ptr<BlobSource> source) : source_(std::move(source)) {}

  std::string_view name() const { return source_->name(); }
  // As BlobSource; Errc::corrupt when what comes is not what was asked for.
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline);
  Result<VerifiedBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline);

 private:
  using Proof = std::shared_ptr<const std::vector<Digest>>;
  Result<Proof> proof(const Digest& manifest, const ContentId& id, Deadline deadline);
  Status check(const Digest& manifest, const ChunkRun& run, std::span<const Digest> digests, Deadline deadline);
  Error wrong(const ContentId& id, std::string_view what) const;

  const std::shared_ptr<BlobSource> source_;
  std::mutex mutex_;
  std::unordered_map<ContentId, Proof> proofs_;  // guarded by mutex_; of blobs that are being read now
  std::size_t proof_digests_ = 0;                // guarded by mutex_; in all of them
};

}  // namespace weft

// A source in memory that can be damaged.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "weft/bytes/source.h"

namespace weft::testing {

// Any thread.
class TwinSource final : public BlobSource {
 public:
  std::string_view name() const override { return "twin"; }
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override;
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override;
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override;
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs) override;

  struct Stored {
    std::vector<std::byte> bytes;
    std::vector<Digest> chunks;
    bool hangs = false;
  };
  void put_manifest(const Digest& digest, std::vector<std::byte> bytes);
  std::pair<Digest, std::vector<std::byte>> lose_manifest();  // there must be one
  void put(const ContentId& id, std::vector<std::byte> bytes);
  void change(const ContentId& id, const std::function<void(Stored&)>& change);
  void lose(const ContentId& id);
  void add_to_answers(std::size_t bytes);  // answers have `bytes` extra bytes
  void let_go();                           // ends all hanging reads
  void vanish();

  std::uint64_t reads() const;
  std::uint64_t bytes_read() const;
  std::vector<ChunkRun> announced() const;  // runs passed to arrived(), unordered

 private:
  Result<std::shared_ptr<const Stored>> find(const ContentId& id, Deadline deadline);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Digest, std::vector<std::byte>> manifests_;        // all guarded by mutex_
  std::map<ContentId, std::shared_ptr<const Stored>> blobs_;  // a change replaces the blob, so that reads copy none
  std::size_t surplus_ = 0;
  bool vanished_ = false;
  std::uint64_t reads_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::vector<ChunkRun> announced_;
};

}  // namespace weft::testing

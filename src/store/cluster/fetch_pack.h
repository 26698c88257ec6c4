// Fills a cached pack. The pack lies below tmp/ until its first blobs are added. Then it is placed, and each batch
// replaces its .toc, under the writer lock, before the index names the new blobs.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "diskformat/toc.h"
#include "os/sys.h"
#include "packs/temp_area.h"
#include "store/parts/parts.h"
#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

class CachedPackWriter final : public FetchPack {
 public:
  static Result<std::unique_ptr<FetchPack>> create(StoreParts& parts, std::uint64_t size);
  static Result<std::unique_ptr<FetchPack>> resume(StoreParts& parts, PackId pack);

  PackId id() const override { return id_; }
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> add(std::span<const FetchedBlob> blobs) override;

 private:
  explicit CachedPackWriter(StoreParts& parts) : parts_(parts) {}
  Result<PackToc> listed() const;
  Status check_whole(const PackToc& toc) const;
  Status put_in_place(const PackToc& toc);

  StoreParts& parts_;
  PackId id_ = 0;
  std::uint64_t size_ = 0;
  Fd fd_;                           // locked exclusively, so that gc and eviction skip the pack
  std::unique_ptr<TempArea> temp_;  // null once the pack is placed
  std::mutex mutex_;                // serializes add(); guards temp_
};

}  // namespace weft

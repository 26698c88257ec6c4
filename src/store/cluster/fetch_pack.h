// Fills a cached pack. The pack lies below tmp/ until its first blobs are added. Then it is placed, and each batch
// replaces its .toc, under the writer lock, before the index names the new blobs.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "diskformat/toc.h"
#include "os/sys.h"
#include "packs/temp_area.h"
#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

class CachedPackWriter final : public FetchPack {
 public:
  static Result<std::unique_ptr<FetchPack>> create(StoreParts& parts, std::uint64_t size);
  static Result<std::unique_ptr<FetchPack>> take(StoreParts& parts, const SafePath& file);
  static Result<std::unique_ptr<FetchPack>> resume(StoreParts& parts, PackId pack);

  PackId id() const override { return id_; }
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> add(std::span<const FetchedBlob> blobs) override;

 private:
  static Result<std::unique_ptr<CachedPackWriter>> open_in(StoreParts& parts, const SafePath* file);
  CachedPackWriter(StoreParts& parts, PackId id, std::unique_ptr<TempArea> temp)
      : parts_(parts), id_(id), temp_(std::move(temp)) {}
  Result<PackToc> listed() const WEFT_REQUIRES(mutex_);
  Status check_whole(const PackToc& toc) const;
  Status put_in_place(const PackToc& toc) WEFT_REQUIRES(mutex_);

  StoreParts& parts_;
  const PackId id_;
  std::uint64_t size_ = 0;
  Fd fd_;                                                   // locked exclusively, so that gc and eviction skip the pack
  Mutex mutex_;                                             // held by add()
  std::unique_ptr<TempArea> temp_ WEFT_GUARDED_BY(mutex_);  // null once the pack is placed
};

}  // namespace weft

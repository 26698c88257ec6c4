// A new pack for blobs whose stored bytes are damaged or missing, copied from undamaged sources. It is below tmp/ until
// place(); without place(), the destructor removes it. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "packs/blob_index.h"
#include "packs/pack_writer.h"
#include "packs/temp_area.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

class RepairPack {
 public:
  static Result<std::unique_ptr<RepairPack>> create(const SafePath& store_path);

  PackId id() const { return pack_->id(); }
  std::span<const NewBlob> blobs() const { return blobs_; }
  // Copies the blob at `offset` of `fd`. Errc::corrupt: these bytes are not the blob. `where` starts error messages.
  Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, const Progress& progress);
  Status sync();   // makes the pack durable, still below tmp/
  Status place();  // moves the pack to packs/; call after sync()

 private:
  RepairPack(SafePath store_path, std::unique_ptr<TempArea> temp, std::unique_ptr<PackWriter> pack)
      : store_path_(std::move(store_path)), temp_(std::move(temp)), pack_(std::move(pack)) {}

  const SafePath store_path_;
  const std::unique_ptr<TempArea> temp_;
  const std::unique_ptr<PackWriter> pack_;
  std::vector<NewBlob> blobs_;
};

}  // namespace weft

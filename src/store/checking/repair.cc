// Repairs damaged and missing blobs: writes them into a new pack and points the index there.
#include <utility>

#include "repair/repair_pack.h"
#include "store/checking/checking.h"
#include "store/publishing/publish_steps.h"

namespace weft {
namespace {

class StoreRepair final : public BlobRepair {
 public:
  StoreRepair(StoreParts& parts, std::unique_ptr<RepairPack> pack) : parts_(parts), pack_(std::move(pack)) {}

  Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) override {
    WEFT_CHECK(pack_->add(id, fd, offset, where, progress));
    progress.advance(id.length);
    return {};
  }
  Status commit() override {
    if (pack_->blobs().empty()) return {};
    WEFT_CHECK(pack_->sync());
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    WEFT_CHECK(pack_->place());
    return replace_damaged(parts_, lock, pack_->blobs());
  }

 private:
  StoreParts& parts_;
  const std::unique_ptr<RepairPack> pack_;
};

}  // namespace

Result<std::unique_ptr<BlobRepair>> begin_repair(StoreParts& parts) {
  WEFT_CHECK(parts.check_writable());
  WEFT_TRY(std::unique_ptr<RepairPack> pack, RepairPack::create(parts.path));
  return std::unique_ptr<BlobRepair>(std::make_unique<StoreRepair>(parts, std::move(pack)));
}

}  // namespace weft

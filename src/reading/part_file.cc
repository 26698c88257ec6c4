#include "reading/part_file.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

class PartFile final : public OpenFile {
 public:
  PartFile(std::shared_ptr<OpenFile> whole, Range part) : whole_(std::move(whole)), part_(part) {}

  std::uint64_t size() const override { return part_.length; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    return whole_->read(part_.offset + offset, out.first(count(offset, out.size())));
  }
  Result<MemoryParts> in_memory(std::uint64_t offset, std::size_t count) override {
    return whole_->in_memory(part_.offset + offset, this->count(offset, count));
  }
  bool better_in_memory() const override { return whole_->better_in_memory(); }
  int backing_fd() const override { return -1; }
  std::optional<LocalPlace> place_of(Range range) const override {
    if (range.offset > part_.length || range.length > part_.length - range.offset) return std::nullopt;
    return whole_->place_of({part_.offset + range.offset, range.length});
  }

 private:
  std::size_t count(std::uint64_t offset, std::size_t wanted) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(wanted, part_.length - std::min(offset, part_.length)));
  }

  const std::shared_ptr<OpenFile> whole_;
  const Range part_;
};

}  // namespace

std::shared_ptr<OpenFile> open_part(std::shared_ptr<OpenFile> whole, Range part) {
  return std::make_shared<PartFile>(std::move(whole), part);
}

}  // namespace weft

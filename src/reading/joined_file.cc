#include "reading/joined_file.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

class JoinedFile final : public OpenFile {
 public:
  explicit JoinedFile(std::vector<std::shared_ptr<OpenFile>> parts) : parts_(std::move(parts)) {
    ends_.reserve(parts_.size());
    for (const auto& part : parts_) ends_.push_back(size() + part->size());
  }

  std::uint64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int backing_fd() const override { return -1; }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= size() || out.empty()) return std::size_t{0};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size() - offset));
    for (std::size_t i = part_at(offset), done = 0; done < count; ++i) {
      const std::uint64_t at = offset + done;
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count - done, ends_[i] - at));
      WEFT_TRY(const std::size_t got, parts_[i]->read(at - begin(i), out.subspan(done, wanted)));
      if (got != wanted) return Error{Errc::io, "a part of a container ended before its end"};
      done += wanted;
    }
    return count;
  }

  // Only within one part: a request that spans several is copied.
  Result<MemoryParts> in_memory(std::uint64_t offset, std::size_t count) override {
    if (offset >= size()) return MemoryParts();
    const std::size_t i = part_at(offset);
    if (std::min<std::uint64_t>(count, size() - offset) > ends_[i] - offset) return MemoryParts();
    return parts_[i]->in_memory(offset - begin(i), count);
  }
  void opened() override {
    for (const auto& part : parts_) part->opened();
  }

 private:
  std::uint64_t begin(std::size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }
  std::size_t part_at(std::uint64_t offset) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
  }

  const std::vector<std::shared_ptr<OpenFile>> parts_;
  std::vector<std::uint64_t> ends_;  // offset behind each part
};

}  // namespace

std::shared_ptr<OpenFile> open_joined(std::vector<std::shared_ptr<OpenFile>> parts) {
  return std::make_shared<JoinedFile>(std::move(parts));
}

}  // namespace weft

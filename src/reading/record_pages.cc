#include "reading/record_pages.h"

#include <algorithm>
#include <utility>

namespace weft {

class RecordPagesMaker final : public RecordSink {
 public:
  Status record(const Record& record) override {
    const std::uint64_t first = record.offset / RecordPages::kPage;
    const std::uint64_t end = (record.offset + record.length + RecordPages::kPage - 1) / RecordPages::kPage;
    if (record.length <= RecordPages::kPage || (end - first) * RecordPages::kPage > RecordPages::kBytesMax) return {};
    found_.push_back(RecordPages::packed(first, end - first));
    return {};
  }
  Status link(std::string_view, std::string_view) override { return {}; }
  Status left_out(std::string_view, std::string_view) override { return {}; }

  RecordPages take() {
    std::ranges::sort(found_);
    RecordPages pages;
    std::uint64_t end = 0;
    for (const std::uint64_t one : found_) {
      const std::uint64_t first = one >> RecordPages::kCountBits;
      if (first < end) continue;
      pages.records_.push_back(one);
      end = first + (one & ((1U << RecordPages::kCountBits) - 1));
    }
    return pages;
  }

 private:
  std::vector<std::uint64_t> found_;
};

Result<RecordPages> RecordPages::scan(const ContainerFormat& format, ByteSource& file) {
  RecordPagesMaker maker;
  WEFT_CHECK(format.scan(file.size(), maker)->finish(file));
  return maker.take();
}

std::optional<Range> RecordPages::around(std::uint64_t offset) const {
  const std::uint64_t page = offset / kPage;
  auto next = std::ranges::upper_bound(records_, packed(page, (1U << kCountBits) - 1));
  if (next == records_.begin()) return std::nullopt;
  const std::uint64_t record = *--next;
  const std::uint64_t first = record >> kCountBits;
  const std::uint64_t pages = record & ((1U << kCountBits) - 1);
  if (page >= first + pages) return std::nullopt;
  return Range{first * kPage, pages * kPage};
}

}  // namespace weft

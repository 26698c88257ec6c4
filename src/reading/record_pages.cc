#include "reading/record_pages.h"

#include <algorithm>
#include <utility>

#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// Returns [first, second): the pages that contain bytes of a record.
std::pair<std::uint64_t, std::uint64_t> pages_of(Range record) {
  return {record.offset / RecordPages::kPage, (end_of(record) + RecordPages::kPage - 1) / RecordPages::kPage};
}

bool is_taken(Range record) {
  const auto [first, end] = pages_of(record);
  return record.length > RecordPages::kPage && (end - first) * RecordPages::kPage <= RecordPages::kBytesMax;
}

}  // namespace

class RecordPagesMaker final : public RecordSink {
 public:
  Status record(const Record& record) override {
    const Range bytes{record.offset, record.length};
    if (!is_taken(bytes)) return {};
    const auto [first, end] = pages_of(bytes);
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

RecordPages RecordPages::of(RecordRows rows) {
  RecordPages pages;
  pages.rows_ = std::move(rows);
  return pages;
}

// Only the last record that begins at or before the page can contain it: the pages of taken records do not overlap.
std::optional<Range> RecordPages::in_rows(std::uint64_t page) const {
  std::uint64_t behind = 0;  // the number of records that begin so
  for (std::uint64_t end = rows_.count; behind < end;) {
    const std::uint64_t middle = behind + (end - behind) / 2;
    if (rows_.row(middle).offset / kPage <= page)
      behind = middle + 1;
    else
      end = middle;
  }
  if (behind == 0) return std::nullopt;
  const std::uint64_t number = behind - 1;
  const auto [first, end] = pages_of(rows_.row(number));
  if (!is_taken(rows_.row(number)) || page >= end) return std::nullopt;
  if (number > 0 && pages_of(rows_.row(number - 1)).second > first) return std::nullopt;
  return Range{first * kPage, (end - first) * kPage};
}

std::optional<Range> RecordPages::around(std::uint64_t offset) const {
  const std::uint64_t page = offset / kPage;
  if (rows_.row) return in_rows(page);
  auto next = std::ranges::upper_bound(records_, packed(page, (1U << kCountBits) - 1));
  if (next == records_.begin()) return std::nullopt;
  const std::uint64_t record = *--next;
  const std::uint64_t first = record >> kCountBits;
  const std::uint64_t pages = record & ((1U << kCountBits) - 1);
  if (page >= first + pages) return std::nullopt;
  return Range{first * kPage, pages * kPage};
}

}  // namespace weft

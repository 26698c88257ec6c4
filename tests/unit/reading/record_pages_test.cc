#include "reading/record_pages.h"

#include <doctest/doctest.h>

#include "testing.h"

namespace weft::testing {
namespace {

// A container with the records that the test names.
class Given final : public ContainerFormat {
 public:
  bool names_are_paths() const override { return false; }
  explicit Given(std::vector<Range> records) : records_(std::move(records)) {}
  std::string_view name() const override { return "given"; }
  bool claims(std::string_view, std::span<const std::byte>) const override { return true; }
  std::unique_ptr<RecordScanner> scan(std::uint64_t, RecordSink& sink) const override {
    return std::make_unique<Scanner>(records_, sink);
  }

 private:
  class Scanner final : public RecordScanner {
   public:
    Scanner(const std::vector<Range>& records, RecordSink& sink) : records_(records), sink_(sink) {}
    Status feed(std::span<const std::byte>) override { return {}; }
    Status finish(ByteSource&) override {
      for (const Range& range : records_) WEFT_CHECK(sink_.record({"r", range.offset, range.length}));
      return {};
    }

   private:
    const std::vector<Range>& records_;
    RecordSink& sink_;
  };

  std::vector<Range> records_;
};

RecordPages pages_of(std::vector<Range> records) {
  MemorySource file(std::string_view(""));
  return must(RecordPages::scan(Given(std::move(records)), file));
}

}  // namespace

TEST_CASE("around() returns a record's pages for each of its bytes and no others") {
  const RecordPages pages = pages_of({{100'000, 5000}, {4096 * 3 + 16, 10'000}});
  CHECK(pages.count() == 2);
  const Range first{4096 * 3, 4096 * 3};
  CHECK_FALSE(pages.around(0));
  CHECK_FALSE(pages.around(4096 * 3 - 1));
  for (const std::uint64_t at : {4096 * 3, 4096 * 3 + 16, 4096 * 5, 4096 * 6 - 1}) CHECK(pages.around(at) == first);
  CHECK_FALSE(pages.around(4096 * 6));
  CHECK(pages.around(102'000) == Range{98'304, 8192});
  CHECK_FALSE(pages.around(98'303));
  CHECK_FALSE(pages.around(98'304 + 8192));
  CHECK_FALSE(pages.around(UINT64_MAX));
}

TEST_CASE("records within a page, very large ones, and those that overlap others are left out") {
  CHECK(pages_of({{10, 4096}}).count() == 0);
  CHECK(pages_of({{0, RecordPages::kBytesMax}}).around(5) == Range{0, RecordPages::kBytesMax});
  CHECK(pages_of({{0, RecordPages::kBytesMax + 1}}).count() == 0);
  const RecordPages pages = pages_of({{4096, 20'000}, {8192, 20'000}, {40'960, 5000}});
  CHECK(pages.count() == 2);
  CHECK(pages.around(8192) == Range{4096, 20'480});
  CHECK_FALSE(pages.around(26'000));
}

TEST_CASE("the pages of rows of a table are those that a scan finds") {
  std::vector<Range> rows;
  for (std::uint64_t page = 1; page < 400;) {
    const std::uint64_t bytes = page % 7 == 0 ? 100 : page * 997 % 50'000;
    rows.push_back({page * RecordPages::kPage + 16, bytes});
    if (page % 7 == 0) rows.push_back({page * RecordPages::kPage + 2000, 50});
    page += 1 + (bytes + 2050) / RecordPages::kPage;
  }
  rows.push_back({1'000 * RecordPages::kPage, RecordPages::kBytesMax + 1});
  const RecordPages scanned = pages_of(rows);
  std::ranges::sort(rows);
  const RecordPages found = RecordPages::of({rows.size(), [&rows](std::uint64_t i) { return rows[i]; }});
  for (std::uint64_t at = 0; at < 1'100 * RecordPages::kPage; at += 1024) CHECK(found.around(at) == scanned.around(at));
  CHECK_FALSE(RecordPages::of({0, [](std::uint64_t) { return Range(); }}).around(5));
  const std::vector<Range> crossing{{0, 9000}, {8000, 9000}};
  const RecordPages first = RecordPages::of({2, [&crossing](std::uint64_t i) { return crossing[i]; }});
  CHECK_FALSE(first.around(3 * RecordPages::kPage));
}

}  // namespace weft::testing

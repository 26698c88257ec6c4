// Which pages of a file hold one record together: what a reader that maps the file and asks for the first of them will
// ask for next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/format.h"
#include "weft/records.h"

namespace weft {

// Immutable. Scanned ones take 8 bytes of memory for each record; rows are looked at where they are.
class RecordPages {
 public:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kBytesMax = 4U << 20U;  // larger records are left out, as those within a page are

  // Scans a container. Records whose pages overlap those of an earlier one are left out. Fails as RecordScanner does.
  static Result<RecordPages> scan(const ContainerFormat& format, ByteSource& file);
  static RecordPages of(RecordRows rows);

  // The whole pages of the record that has this byte. The last page may reach behind the end of the file.
  std::optional<Range> around(std::uint64_t offset) const;
  std::size_t count() const { return records_.size(); }  // of scanned ones

 private:
  friend class RecordPagesMaker;
  static constexpr unsigned kCountBits = 11;  // kBytesMax / kPage pages fit

  static std::uint64_t packed(std::uint64_t page, std::uint64_t pages) { return page << kCountBits | pages; }
  std::optional<Range> in_rows(std::uint64_t page) const;

  RecordRows rows_;                     // of such as have rows
  std::vector<std::uint64_t> records_;  // the first page and how many, ascending
};

}  // namespace weft

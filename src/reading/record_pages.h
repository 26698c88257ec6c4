// The pages that hold one record of a file. A reader that maps the file and touches the record's first page will touch
// the others next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/model/records.h"

namespace weft {

// Immutable. Scanned records take 8 bytes of memory each; rows are read in place.
class RecordPages {
 public:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kBytesMax = 4U << 20U;  // larger records are left out, as are records within one page

  // Scans a container. Leaves out records whose pages overlap those of an earlier record. Fails as RecordScanner does.
  static Result<RecordPages> scan(const ContainerFormat& format, ByteSource& file);
  static RecordPages of(RecordRows rows);

  // Returns the whole pages of the record that contains this byte. The last page may reach past the end of the file.
  std::optional<Range> around(std::uint64_t offset) const;
  std::size_t count() const { return records_.size(); }  // scanned records only

 private:
  friend class RecordPagesMaker;
  static constexpr unsigned kCountBits = 11;  // kBytesMax / kPage pages fit

  static std::uint64_t packed(std::uint64_t page, std::uint64_t pages) { return page << kCountBits | pages; }
  std::optional<Range> in_rows(std::uint64_t page) const;

  RecordRows rows_;                     // set by of() only
  std::vector<std::uint64_t> records_;  // packed(first page, number of pages), ascending
};

}  // namespace weft

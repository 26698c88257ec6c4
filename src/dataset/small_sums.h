// The lines of SHA256SUMS for the small files of a data set, in the order of the file table. There may be a hundred
// million bytes of them, so a part is made when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dataset/file_table.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Any thread. The table's bytes outlive it.
class SmallSums {
 public:
  // Fills `out` with the digests of consecutive files from `first` on.
  using ReadDigests = std::function<Status(std::uint64_t first, std::span<Digest> out)>;

  explicit SmallSums(const FileTable& table);
  std::uint64_t bytes() const;
  // `out` lies within bytes().
  Status read(std::uint64_t offset, std::span<std::byte> out, const ReadDigests& digests) const;

 private:
  std::uint64_t line_start(std::uint64_t file) const;
  std::uint64_t escapes_before(std::uint64_t file) const;

  FileTable table_;
  // For each kEscapesStep files: sums_escapes() of all paths before them. Empty if no path needs an escape.
  std::vector<std::uint64_t> escapes_;
};

}  // namespace weft

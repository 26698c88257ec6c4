// Files that are received while an import reads them (header only).
//
// The contract between the receiver and the reader:
//  · The file has its whole size from the beginning. The receiver reports bytes once they are in the file, and writes
//    none of them again.
//  · The receiver reports the last byte of a file only after it has closed the file. From then on the file is like any
//    other one: a lease finds whoever still writes, and a later change of its times is an error.
// The reader believes these reports only as far as the bytes that it hashes: a file whose SHA-256 is not the expected
// one is not published. A wrong report therefore fails the import. Whether a file may become a pack as it is depends on
// more: packs/imported_file.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Waits for the bytes of a range of one file, at most about a second. Returns the end of the run of bytes from
// range.offset on that are there: range.offset if the first one is not. Errors: the receiving has failed, or
// Errc::cancelled. Empty: the whole file is there.
using AwaitBytes = std::function<Result<std::uint64_t>(Range range)>;

// The bytes of an arriving file that its reader knows to be there. One thread.
class ArrivedRun {
 public:
  ArrivedRun(AwaitBytes await, std::uint64_t size) : await_(std::move(await)), size_(size) {}
  // Returns once the range, which lies in the file, is there. Errors as AwaitBytes.
  Status wait(Range range) {
    const std::uint64_t wanted = range.offset + range.length;
    if (!await_ || (range.offset >= begin_ && wanted <= end_)) return {};
    if (range.offset < begin_ || range.offset > end_) begin_ = end_ = range.offset;
    while (end_ < wanted) {
      WEFT_TRY(const std::uint64_t end, await_({end_, wanted - end_}));
      end_ = std::clamp(end, end_, size_);
    }
    return {};
  }
  bool reaches_end() const { return end_ == size_; }  // true if the last byte of the file is there

 private:
  const AwaitBytes await_;
  const std::uint64_t size_;
  std::uint64_t begin_ = 0, end_ = 0;
};

// The files of an import that still arrive. The import calls await() on one thread at a time.
class ArrivingFiles {
 public:
  virtual ~ArrivingFiles() = default;
  // Returns the plain SHA-256 that the file at this path in the version must have; nothing if no such file arrives.
  virtual std::optional<Digest> expected(std::string_view path) const = 0;
  // As AwaitBytes, of such a file.
  virtual Result<std::uint64_t> await(std::string_view path, Range range) = 0;
};

}  // namespace weft

// The pages of a file that is read ahead in: which are in the page cache, and which are missing. The caller locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "os/sys.h"
#include "reading/prefetch_subject.h"
#include "weft/content.h"

namespace weft {

class SubjectPages {
 public:
  // [offset, end) of a descriptor, within one aligned stretch of kLargePage.
  struct Part {
    int fd = -1;
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    bool operator==(const Part&) const = default;
  };

  // The caller owns the descriptors of `pieces`.
  explicit SubjectPages(std::vector<FilePiece> pieces) : pieces_(std::move(pieces)) {}

  std::uint64_t size() const;
  std::optional<Part> page_at(std::uint64_t offset) const;  // the part of one byte
  bool any_cached(const Range& range) const;
  bool all_cached(const Range& range) const;
  // True if a few pages from the first to the last are all cached. Takes a few microseconds; all_cached() of the whole
  // file takes 0.1 ms per GiB.
  bool seem_cached() const;
  // Appends the parts of `range`, except those in pieces of the file that are all cached.
  void add_missing(const Range& range, std::vector<Part>& parts) const;

  // Opens the file once more, and uses only this descriptor from now on: the caller's may be closed. Returns false if
  // there are several pieces, or if the file cannot be opened.
  bool hold();
  bool held() const { return held_.valid(); }
  bool held_is(const std::vector<FilePiece>& pieces) const;  // `pieces` are the held file, in the same size
  bool held_is_deleted() const;                              // or fstat(2) fails

 private:
  template <class Visit>
  void each_part(const Range& range, Visit visit) const;

  std::vector<FilePiece> pieces_;
  Fd held_;
};

}  // namespace weft

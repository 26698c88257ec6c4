#include "reading/subject_pages.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "os/file_ops.h"
#include "os/page_cache.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

constexpr unsigned kGlances = 4;
constexpr char kWhat[] = "a file read ahead";

std::uint64_t size_of(const std::vector<FilePiece>& pieces) {
  return pieces.empty() ? 0 : end_of(pieces.back());
}

bool is_same_file(int one, int other) {
  const auto a = stat_fd(one, kWhat);
  const auto b = stat_fd(other, kWhat);
  return a.ok() && b.ok() && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

}  // namespace

std::uint64_t SubjectPages::size() const {
  return size_of(pieces_);
}

// Calls visit(fd, offset, length) for each part of the range that lies in one piece.
template <class Visit>
void SubjectPages::each_part(const Range& range, Visit visit) const {
  const auto [first, end] = runs_in(pieces_, range);
  for (std::size_t i = first; i < end; ++i) {
    const FilePiece& piece = pieces_[i];
    const Range part = overlap(range, {piece.offset, piece.length});
    if (part.length > 0) visit(piece.fd, piece.fd_offset + (part.offset - piece.offset), part.length);
  }
}

std::optional<SubjectPages::Part> SubjectPages::page_at(std::uint64_t offset) const {
  std::optional<Part> page;
  each_part({offset, 1}, [&page](int fd, std::uint64_t at, std::uint64_t) { page = Part{fd, at, at + 1}; });
  return page;
}

bool SubjectPages::any_cached(const Range& range) const {
  bool cached = false;
  each_part(range, [&](int fd, std::uint64_t at, std::uint64_t length) {
    const auto pages = cached ? Result<std::uint64_t>(0U) : cached_pages(fd, at, length);
    cached = cached || (pages.ok() && *pages > 0);
  });
  return cached;
}

bool SubjectPages::all_cached(const Range& range) const {
  bool all = true;
  each_part(range,
            [&](int fd, std::uint64_t at, std::uint64_t length) { all = all && weft::all_cached(fd, at, length); });
  return all;
}

bool SubjectPages::seem_cached() const {
  const std::uint64_t first = pieces_.empty() ? 0 : pieces_.front().offset;
  const std::uint64_t span = size() - first;
  bool all = span > 0;
  for (unsigned i = 0; all && i < kGlances; ++i) all = all_cached({first + (span - 1) / (kGlances - 1) * i, 1});
  return all;
}

void SubjectPages::add_missing(const Range& range, std::vector<Part>& parts) const {
  each_part(range, [&](int fd, std::uint64_t offset, std::uint64_t length) {
    if (weft::all_cached(fd, offset, length)) return;
    for (const std::uint64_t end = offset + length; offset < end; offset = parts.back().end)
      parts.push_back({fd, offset, std::min(end, offset / kLargePage * kLargePage + kLargePage)});
  });
}

// Opens the file again: a new open file description does not share the locks of the caller's.
bool SubjectPages::hold() {
  if (held() || pieces_.size() != 1) return held();
  auto opened = open_descriptor(pieces_.front().fd);
  if (!opened.ok()) return false;
  held_ = std::move(opened).value();
  pieces_.front().fd = held_.get();
  return true;
}

bool SubjectPages::held_is(const std::vector<FilePiece>& pieces) const {
  return held() && pieces.size() == 1 && size_of(pieces) == size() && is_same_file(held_.get(), pieces.front().fd);
}

bool SubjectPages::held_is_deleted() const {
  const auto facts = stat_fd(held_.get(), kWhat);
  return !facts.ok() || facts->st_nlink == 0;
}

}  // namespace weft

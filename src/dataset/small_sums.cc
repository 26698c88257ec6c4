#include "dataset/small_sums.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "dataset/binary_search.h"
#include "dataset/sums_text.h"

namespace weft {
namespace {

constexpr std::uint64_t kDigestsAtOnce = 1024;
constexpr std::uint64_t kEscapesStep = 128;  // a table may have a hundred million files

}  // namespace

SmallSums::SmallSums(const FileTable& table) : table_(table) {
  if (!table_.has_in_names('\\')) return;  // names have no newlines
  std::uint64_t sum = 0;
  for (std::uint64_t number = 0; number < table_.directories(); ++number) {
    const FileTable::Directory dir = table_.directory(number);
    const std::uint64_t above = sums_escapes(table_.path_of(number));
    for (std::uint64_t file = dir.first_file; file < dir.first_file + dir.files; ++file) {
      if (file % kEscapesStep == 0) escapes_.push_back(sum);
      const std::uint64_t own = sums_escapes(table_.name(file));
      sum += above + own - (above != 0 && own != 0 ? 1 : 0);  // the line has one escape at its start
    }
  }
}

std::uint64_t SmallSums::escapes_before(std::uint64_t file) const {
  if (escapes_.empty()) return 0;
  std::uint64_t sum = escapes_[file / kEscapesStep];
  for (std::uint64_t one = file - file % kEscapesStep; one < file; ++one) sum += sums_escapes(table_.file_path(one));
  return sum;
}

// A line of keys.txt is the path and a newline.
std::uint64_t SmallSums::line_start(std::uint64_t file) const {
  return table_.line_start(file) + file * (kSumsLineSpare - 1) + escapes_before(file);
}

std::uint64_t SmallSums::bytes() const {
  if (table_.files() == 0) return 0;
  const std::uint64_t last = table_.files() - 1;
  return line_start(last) + sums_line_bytes(table_.file_path(last));
}

Status SmallSums::read(std::uint64_t offset, std::span<std::byte> out, const ReadDigests& digests) const {
  if (out.empty()) return {};
  std::uint64_t file = first_that(table_.files(), [&](std::uint64_t i) { return line_start(i) > offset; }) - 1;
  std::uint64_t skip = offset - line_start(file);
  std::vector<Digest> some;
  for (std::uint64_t first = file; !out.empty(); ++file) {
    if (file >= first + some.size()) {
      first = file;
      some.resize(std::min({kDigestsAtOnce, table_.files() - file, out.size() / kSumsLineSpare + 2}));
      WEFT_CHECK(digests(first, some));
    }
    std::string line;
    append_sums_line(line, some[file - first], table_.file_path(file));
    const std::size_t bytes = std::min<std::size_t>(line.size() - skip, out.size());
    std::memcpy(out.data(), line.data() + skip, bytes);
    out = out.subspan(bytes);
    skip = 0;
  }
  return {};
}

}  // namespace weft

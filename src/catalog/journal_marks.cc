#include "catalog/journal_marks.h"

#include <algorithm>
#include <array>

#include "diskformat/record.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kMarkMax = 512;  // bytes of its record

using Marks = std::array<std::optional<Counters>, 2>;

Result<Marks> read_marks(int fd, std::string_view where) {
  Marks marks;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    std::vector<std::byte> bytes(kMarkMax);
    WEFT_TRY(std::size_t got, read_some(fd, i * kMarkBlock, bytes, where));
    bytes.resize(got);
    std::optional<std::size_t> length = record_length(bytes);
    if (!length) continue;
    bytes.resize(*length);
    auto payload = open_record(RecordKind::counters, bytes, where);
    if (!payload.ok() && payload.error().code == Errc::unsupported) return std::move(payload).error();
    if (!payload.ok()) continue;
    auto counters = decode_row<Counters>(*payload, where);
    if (counters.ok()) marks[i] = *counters;
  }
  return marks;
}

std::uint64_t reach(const std::optional<Counters>& mark) {
  return mark ? mark->journal_end : 0;
}

Status write_mark(int fd, std::size_t slot, const Counters& counters, std::string_view where) {
  return write_exact(fd, slot * kMarkBlock, seal_record(RecordKind::counters, encode_row(counters)), where);
}

}  // namespace

Result<std::optional<Counters>> last_mark(int fd, std::string_view where) {
  WEFT_TRY(Marks marks, read_marks(fd, where));
  return reach(marks[0]) >= reach(marks[1]) && marks[0] ? marks[0] : marks[1];
}

Status put_mark(int fd, const Counters& counters, std::string_view where) {
  WEFT_TRY(Marks marks, read_marks(fd, where));
  bool first = !marks[0] || (marks[1] && reach(marks[0]) < reach(marks[1]));
  return write_mark(fd, first ? 0 : 1, counters, where);
}

Status pull_marks_back(int fd, std::uint64_t journal_end, std::string_view where) {
  WEFT_TRY(Marks marks, read_marks(fd, where));
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (reach(marks[i]) <= journal_end) continue;
    marks[i]->journal_end = journal_end;
    WEFT_CHECK(write_mark(fd, i, *marks[i], where));
  }
  return {};
}

}  // namespace weft

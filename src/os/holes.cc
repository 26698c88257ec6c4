#include "os/holes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "os/sys.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

void append(std::vector<Range>& runs, std::uint64_t begin, std::uint64_t end) {
  if (begin != end) append_run(runs, {begin, end - begin});
}

}  // namespace

// The first byte decides for most data.
bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes.front() == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool has_no_data(int fd, std::uint64_t offset, std::uint64_t length) {
  const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  return data < 0 ? errno == ENXIO : static_cast<std::uint64_t>(data) >= offset + length;
}

Result<std::optional<std::uint64_t>> next_data(int fd, std::uint64_t from, std::string_view where) {
  const off_t data = ::lseek(fd, static_cast<off_t>(from), SEEK_DATA);
  if (data >= 0) return std::optional(static_cast<std::uint64_t>(data));
  if (errno == ENXIO) return std::optional<std::uint64_t>();
  return sys_error(errno, where);
}

std::vector<Range> data_runs(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::vector<Range> runs;
  std::uint64_t data = 0;                                                 // start of the current run
  std::uint64_t zeros = (kHoleBlock - offset % kHoleBlock) % kHoleBlock;  // start of the zeros before `at`
  zeros = std::min<std::uint64_t>(zeros, bytes.size());                   // a partial block counts as data
  std::uint64_t at = zeros;
  const auto close = [&] {
    if (at - zeros < kHoleMin) return;
    append(runs, data, zeros);
    data = at;
  };
  for (; bytes.size() - at >= kHoleBlock; at += kHoleBlock) {
    if (is_zero(bytes.subspan(at, kHoleBlock))) continue;
    close();
    zeros = at + kHoleBlock;
  }
  close();
  append(runs, data, bytes.size());
  return runs;
}

std::vector<Range> runs_to_write(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::vector<Range> runs;
  std::uint64_t end = 0;
  const auto add_zeros = [&](std::uint64_t begin, std::uint64_t to) {
    if (begin < to && !has_no_data(fd, offset + begin, to - begin)) append(runs, begin, to);
  };
  for (const Range& run : data_runs(offset, bytes)) {
    add_zeros(end, run.offset);
    append(runs, run.offset, run.offset + run.length);
    end = run.offset + run.length;
  }
  add_zeros(end, bytes.size());
  return runs;
}

Status extend_file(int fd, std::uint64_t size, std::string_view where) {
  WEFT_TRY(const struct stat st, stat_fd(fd, where));
  if (static_cast<std::uint64_t>(st.st_size) >= size || ::ftruncate(fd, static_cast<off_t>(size)) == 0) return {};
  return sys_error(errno, fmt::format("{}: cannot be made {} bytes long", where, size));
}

}  // namespace weft

#include "store/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fmt/core.h>

#include "store/record.h"

namespace weft {
namespace {

// Where the next whole record begins after damage at `at`.
std::optional<std::size_t> next_record(std::span<const std::byte> bytes, std::size_t at) {
  for (++at; at < bytes.size(); ++at)
    if (looks_like_event(bytes.subspan(at)) && record_length(bytes.subspan(at))) return at;
  return {};
}

}  // namespace

Status Journal::create() {
  WEFT_CHECK(make_directories(dir_));
  WEFT_TRY(Fd fd, open_file(path_, O_WRONLY | O_CREAT));
  WEFT_CHECK(sync_file(fd.get(), path_));
  return sync_directory(dir_);
}

Result<std::uint64_t> Journal::size() const {
  WEFT_TRY(struct stat st, stat_file(path_));
  return static_cast<std::uint64_t>(st.st_size);
}

Result<JournalTail> Journal::read(std::uint64_t begin, std::uint64_t end) const {
  WEFT_TRY(Fd fd, open_file(path_, O_RDONLY));
  WEFT_TRY(std::uint64_t size, this->size());
  JournalTail tail;
  tail.size = size;
  tail.end = begin;
  if (size <= begin) return tail;
  WEFT_TRY(MappedFile file, MappedFile::map(fd.get(), size, path_));
  auto bytes = file.bytes().subspan(0, std::min(size, end));
  for (std::size_t at = begin; at < bytes.size();) {
    std::optional<std::size_t> length = record_length(bytes.subspan(at));
    if (length) {
      WEFT_TRY(Event event, decode_event(bytes.subspan(at, *length), fmt::format("{}: record at {}", path_, at)));
      tail.end = at += *length;
      tail.events.push_back({std::move(event), tail.end});
      continue;
    }
    std::optional<std::size_t> next = next_record(bytes, at);
    if (!next) break;
    tail.problems.push_back(fmt::format("{}: {} bytes at {} are no whole record", path_, *next - at, at));
    at = *next;
  }
  return tail;
}

Status Journal::append(std::uint64_t at, std::span<const std::byte> record) const {
  WEFT_TRY(Fd fd, open_file(path_, O_WRONLY));
  Status status = write_exact(fd.get(), at, record, path_);
  if (status.ok()) status = sync_file(fd.get(), path_);
  if (!status.ok()) static_cast<void>(truncate(at));
  return status;
}

Status Journal::truncate(std::uint64_t size) const {
  WEFT_TRY(Fd fd, open_file(path_, O_WRONLY));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return sys_error(errno, fmt::format("{}: truncate", path_));
  return sync_file(fd.get(), path_);
}

}  // namespace weft

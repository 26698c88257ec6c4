#include "packs/source.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "os/file_ops.h"
#include "os/holes.h"
#include "os/sys.h"

namespace weft {
namespace {

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

Source::Source(int fd, std::string where, const struct stat& before, Progress& progress, Hook after_read)
    : fd_(fd),
      reading_(fd),
      where_(std::move(where)),
      before_(before),
      progress_(&progress),
      after_read_(std::move(after_read)),
      sparse_(static_cast<std::uint64_t>(before.st_blocks) * 512 < static_cast<std::uint64_t>(before.st_size)) {}

Result<Source> Source::open(int fd, std::string_view where, Progress& progress, Hook after_read) {
  WEFT_TRY(struct stat st, stat_fd(fd, where));
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, fmt::format("{}: expected a regular file", where)};
  advise_sequential(fd);
  return Source(fd, std::string(where), st, progress, std::move(after_read));
}

void Source::arrive_by(AwaitBytes await) {
  if (await) arrival_.emplace(std::move(await), size());
}

// Takes the times of the file as soon as its last byte is there, before the import reads that byte.
Status Source::await(Range range) {
  if (!arrival_ || arrived_) return {};
  WEFT_CHECK(arrival_->wait(range));
  if (!arrival_->reaches_end()) return {};
  arrived_ = true;
  WEFT_TRY(const struct stat now, stat_fd(fd_, where_));
  if (now.st_size != before_.st_size)
    return Error{Errc::changed,
                 fmt::format("{}: changed while it arrived: expected {} bytes, got {}", where_, size(), now.st_size)};
  before_ = now;
  return {};
}

Status Source::read(std::uint64_t offset, std::span<std::byte> out) {
  if (progress_->cancelled()) return Error{Errc::cancelled, fmt::format("{}: stopped", where_)};
  WEFT_CHECK(await({offset, out.size()}));
  // The end of the file is always read: beyond the end of a file that was cut, has_no_data() would see a hole.
  if (sparse_ && offset + out.size() < size() && has_no_data(reading_, offset, out.size())) {
    std::ranges::fill(out, std::byte{0});
  } else {
    WEFT_TRY(const std::size_t got, read_some(reading_, offset, out, where_));
    if (got != out.size())
      return Error{Errc::changed, fmt::format("{}: changed while it was read: expected {} bytes, got {}", where_,
                                              size(), offset + got)};
    if (after_read_) after_read_(offset);
  }
  const std::uint64_t end = offset + out.size();
  if (show_to_ && end > seen_) show_to_(out.last(end - std::max(seen_, offset)));
  if (end > seen_) progress_->advance(end - std::max(seen_, offset));
  seen_ = std::max(seen_, end);
  return {};
}

Status Source::stat_again() {
  WEFT_TRY(const struct stat now, stat_fd(fd_, where_));
  if (now.st_size != before_.st_size || !same_time(now.st_mtim, before_.st_mtim))
    return Error{Errc::changed, fmt::format("{}: changed before it was read", where_)};
  before_ = now;
  return {};
}

Status Source::check_unchanged() const {
  WEFT_TRY(struct stat after, stat_fd(fd_, where_));
  if (after.st_size != before_.st_size)
    return Error{Errc::changed, fmt::format("{}: changed while it was read: expected {} bytes, got {}", where_,
                                            before_.st_size, after.st_size)};
  if (!same_time(after.st_mtim, before_.st_mtim) || !same_time(after.st_ctim, before_.st_ctim))
    return Error{Errc::changed, fmt::format("{}: changed while it was read", where_)};
  return {};
}

}  // namespace weft

#include "index/open_versions.h"

#include <fcntl.h>

#include <algorithm>

#include <fmt/core.h>

#include "os/file_lock.h"

namespace weft {
namespace {

constexpr VersionId kVersionEnd = VersionId{1} << 62U;  // above all version ids, and still a valid file offset

SafePath path_in(const SafePath& index_dir) {
  return index_dir / "open";
}

}  // namespace

Result<Fd> OpenVersions::open_file_in(const SafePath& index_dir) {
  return open_file(path_in(index_dir), O_RDONLY);
}

Result<std::shared_ptr<OpenVersions>> OpenVersions::open(const SafePath& index_dir, int inherited) {
  SafePath path = path_in(index_dir);
  Fd fd;
  if (inherited >= 0) {
    WEFT_TRY(fd, duplicate(inherited, path));
  } else {
    auto opened = open_file(path, O_RDONLY);
    if (!opened.ok() && opened.error().code == Errc::not_found)
      return Error{Errc::corrupt, opened.error().message + "; run `weft fsck --rebuild`"};
    WEFT_TRY(fd, std::move(opened));
  }
  return std::shared_ptr<OpenVersions>(new OpenVersions(std::move(path), std::move(fd)));
}

Status OpenVersions::count(VersionId version) {
  if (version >= kVersionEnd) return Error{Errc::invalid, fmt::format("{}: no version {}", path_, version)};
  const std::lock_guard lock(mutex_);
  Held& held = held_[version];
  Status locked = held.count == 0 ? lock_bytes(fd_.get(), LockKind::shared, {version, 1}, path_) : Status{};
  if (!locked.ok())
    held_.erase(version);
  else
    ++held.count;
  return locked;
}

void OpenVersions::let_go(VersionId version) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(version);
  if (--found->second.count > 0) return;
  held_.erase(found);
  static_cast<void>(unlock_bytes(fd_.get(), {version, 1}, path_));
}

bool OpenVersions::is_sure(VersionId version) const {
  const std::lock_guard lock(mutex_);
  return held_.at(version).sure;
}

void OpenVersions::make_sure(VersionId version) {
  const std::lock_guard lock(mutex_);
  held_.at(version).sure = true;
}

VersionHold OpenVersions::make_hold(VersionId version) {
  return {this, [self = shared_from_this(), version](const void*) { self->let_go(version); }};
}

Result<VersionHold> OpenVersions::hold(VersionId version) {
  WEFT_CHECK(count(version));
  return make_hold(version);
}

Result<std::vector<VersionHold>> OpenVersions::take_over(std::span<const VersionId> versions) {
  std::vector<VersionHold> holds;
  for (const VersionId version : versions) {
    WEFT_TRY(VersionHold taken, hold(version));
    holds.push_back(std::move(taken));
  }
  const std::lock_guard lock(mutex_);
  VersionId next = 0;
  for (const auto& held : held_) {
    if (held.first > next) WEFT_CHECK(unlock_bytes(fd_.get(), {next, held.first - next}, path_));
    next = held.first + 1;
  }
  WEFT_CHECK(unlock_bytes(fd_.get(), {next, 0}, path_));
  return holds;
}

// Opens a new description: the description of a hold does not see its own locks.
Result<bool> OpenVersions::is_open(VersionId version) const {
  WEFT_TRY(const Fd fd, open_file(path_, O_RDONLY));
  return excluded(fd.get(), LockKind::exclusive, {version, 1}, path_);
}

Result<OpenVersions::Claims> OpenVersions::begin_claims() const {
  WEFT_TRY(Fd fd, open_file(path_, O_RDWR));
  return Claims(path_, std::move(fd));
}

Result<bool> OpenVersions::Claims::claim(VersionId version) {
  if (const auto known = claimed_.find(version); known != claimed_.end()) return known->second;
  const Status locked = lock_bytes(fd_.get(), LockKind::exclusive, {version, 1}, path_);
  if (!locked.ok() && locked.error().code != Errc::busy) return locked.error();
  return claimed_[version] = locked.ok();
}

}  // namespace weft

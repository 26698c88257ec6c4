#include "daemon/background/memory_promises.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

constexpr std::chrono::seconds kPromisedAtLeast{60};
constexpr std::uint64_t kBytesPerSecond = 4U << 20U;  // of the slowest source whose files are worth memory

}  // namespace

MemoryPromises::MemoryPromises(std::uint64_t bytes_max, uid_t own, const TimeSource& time)
    : bytes_max_(bytes_max), time_(time), shares_([this] { return UserShares::bound_of(bytes_max_); }, own) {}

std::uint64_t MemoryPromises::promised() {
  std::uint64_t bytes = 0;
  for (auto publish = running_.begin(); publish != running_.end(); ++publish)
    if (lasts(publish)) bytes += publish->bytes;
  return bytes;
}

MemoryPromises::Publish MemoryPromises::begin(uid_t user, std::uint64_t bytes, std::uint64_t taken) {
  Running publish{.begun = time_.now(), .ends = Deadline::max()};
  if (bytes != 0) {
    const std::uint64_t others = taken + promised();
    if (others > bytes_max_ || bytes > bytes_max_ - others) return running_.end();
    publish.share = shares_.take(user, bytes);
    if (!publish.share) return running_.end();
    publish.bytes = bytes;
    publish.ends = publish.begun + kPromisedAtLeast + std::chrono::seconds(bytes / kBytesPerSecond);
  }
  running_.push_back(std::move(publish));
  return std::prev(running_.end());
}

bool MemoryPromises::lasts(Publish publish) {
  if (!publish->lapsed && !publish->committing && publish->ends <= time_.now()) {
    publish->lapsed = true;
    publish->bytes = 0;
    publish->share.reset();
  }
  return !publish->lapsed;
}

bool MemoryPromises::commit(Publish publish) {
  publish->committing = lasts(publish);
  return publish->committing;
}

std::uint64_t MemoryPromises::finish(Publish publish, VersionId version) {
  const std::uint64_t bytes = publish->bytes;
  if (version != 0 && publish->share) kept_[version] = std::move(publish->share);
  running_.erase(publish);
  return bytes;
}

bool MemoryPromises::hold_flush() const {
  const Deadline now = time_.now();
  return std::ranges::any_of(running_, [now](const Running& publish) { return now < publish.begun + kHoldsFlush; });
}

std::vector<VersionId> MemoryPromises::versions() const {
  std::vector<VersionId> all;
  for (const auto& version : kept_) all.push_back(version.first);
  return all;
}

}  // namespace weft

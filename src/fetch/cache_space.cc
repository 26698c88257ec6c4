#include "fetch/cache_space.h"

#include <algorithm>
#include <chrono>

namespace weft {
namespace {

constexpr auto kRemembered = std::chrono::minutes(1);

}  // namespace

std::uint64_t CacheSpace::available() const {
  const auto disk = disk_();
  return disk ? disk->available : UINT64_MAX;
}

std::uint64_t CacheSpace::left() const {
  const auto disk = disk_();
  if (!disk) return UINT64_MAX;
  const std::uint64_t reserve = cache_reserve(*disk);
  return disk->available - std::min(disk->available, reserve);
}

std::uint64_t CacheSpace::bound(std::uint64_t cache_max, std::uint64_t used) const {
  const auto disk = disk_();
  if (!disk) return cache_max;
  const std::uint64_t reserve = cache_reserve(*disk);
  const std::uint64_t all = used + std::min(disk->available, UINT64_MAX - used);
  return std::min(cache_max, all - std::min(all, reserve));
}

void VainEviction::note(std::uint64_t available, Deadline now) {
  at_ = available;
  until_ = now + kRemembered;
}

bool VainEviction::holds(std::uint64_t available, Deadline now) const {
  return available <= at_ && now < until_;
}

}  // namespace weft

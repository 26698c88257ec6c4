#include "fetch/version_bases.h"

namespace weft {
namespace {

constexpr std::uint64_t kTells = 32U << 20U;  // requested bytes before coding is judged
constexpr double kShareMax = 0.7;             // of the plain bytes: above it, coding is not worth the work

}  // namespace

// Returns the base of a blob, unless it is damaged.
std::optional<BasePair> VersionBases::sound(const ContentId& blob) const {
  const auto found = pairs_.find(blob);
  if (found == pairs_.end() || left_out_.contains(found->second.base)) return {};
  return found->second;
}

std::optional<BasePair> VersionBases::find(const ContentId& blob) const {
  const MutexLock lock(mutex_);
  return sound(blob);
}

std::optional<BasePair> VersionBases::find_to_code(const ContentId& blob) const {
  const MutexLock lock(mutex_);
  const bool pays = counts_.asked_bytes < kTells ||
                    static_cast<double>(counts_.given_bytes) <= kShareMax * static_cast<double>(counts_.asked_bytes);
  return pays ? sound(blob) : std::nullopt;
}

void VersionBases::note(const CodedCounts& counts) {
  const MutexLock lock(mutex_);
  counts_ += counts;
}

bool VersionBases::leave_out(const ContentId& base) {
  const MutexLock lock(mutex_);
  return left_out_.insert(base).second;
}

CodedCounts VersionBases::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace weft

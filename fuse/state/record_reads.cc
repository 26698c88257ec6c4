#include "fuse/state/record_reads.h"

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace weft {

std::optional<RecordReads::Turn> RecordReads::begin(NodeId node, Range record) {
  if (!works()) return std::nullopt;
  const std::pair key(node, record.offset);
  const MutexLock lock(mutex_);
  if (storing_.size() >= kStorersMax || !storing_.insert(key).second) return std::nullopt;
  return std::optional<Turn>(std::in_place, *this, key);
}

void RecordReads::end(const std::pair<NodeId, std::uint64_t>& key) {
  const MutexLock lock(mutex_);
  storing_.erase(key);
}

// ENOENT: the kernel has forgotten the file. ENOMEM: a temporary failure.
bool RecordReads::store(KernelCache& cache, NodeId node, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  const int failed = -cache.store_pages(node, offset, bytes);
  if (failed == 0 || failed == ENOENT || failed == ENOMEM) return true;
  if (!works_.exchange(false)) return true;
  log_warning("records are not read at once: storing pages in the kernel's cache fails ({})", std::strerror(failed));
  return false;
}

}  // namespace weft

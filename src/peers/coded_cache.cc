#include "peers/coded_cache.h"

#include <utility>

namespace weft {
namespace {

constexpr std::size_t kEntryBytes = 256;  // table memory of the cache for each chunk

}  // namespace

CodedCache::Bytes CodedCache::find_or(const CodedKey& key, const std::function<Bytes()>& code) {
  {
    UniqueLock lock(mutex_);
    done_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return !coding_.contains(key); });
    if (auto known = chunks_.find(key)) {
      ++figures_.found;
      return known;
    }
    coding_.insert(key);
  }
  Bytes coded = code();
  if (coded) put(key, coded);
  {
    const MutexLock lock(mutex_);
    coding_.erase(key);
    ++(coded ? figures_.coded : figures_.plain);
  }
  done_.notify_all();
  return coded;
}

void CodedCache::put(const CodedKey& key, Bytes coded) {
  const std::size_t bytes = coded->size() + kEntryBytes;
  chunks_.put(key, std::move(coded), bytes);
}

CodedCache::Figures CodedCache::figures() const {
  const MutexLock lock(mutex_);
  Figures figures = figures_;
  figures.bytes = chunks_.bytes();
  return figures;
}

std::shared_ptr<CodingDesk> PeerCoding::desk() {
  std::unique_ptr<CodingDesk> taken;
  {
    const MutexLock lock(kept_->mutex);
    if (!kept_->desks.empty()) {
      taken = std::move(kept_->desks.back());
      kept_->desks.pop_back();
    }
  }
  if (!taken) taken = std::make_unique<CodingDesk>();
  return {taken.release(), [kept = kept_](CodingDesk* desk) {
            std::unique_ptr<CodingDesk> back(desk);
            const MutexLock lock(kept->mutex);
            if (kept->desks.size() < limits::kCodersKeptMax) kept->desks.push_back(std::move(back));
          }};
}

}  // namespace weft

#include "peers/upload_slots.h"

#include <algorithm>
#include <utility>

namespace weft {

struct UploadSlots::Ticket {
  Ticket(std::shared_ptr<Uploads> of, std::list<Upload>::iterator which) : uploads(std::move(of)), upload(which) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    {
      const MutexLock lock(uploads->mutex);
      uploads->now.erase(upload);
    }
    uploads->ended.notify_all();
  }
  const std::shared_ptr<Uploads> uploads;
  const std::list<Upload>::iterator upload;
};

// True if all slots are in use, not only by `node`: a single peer never waits for itself.
bool UploadSlots::Uploads::is_full_for(std::string_view node) const {
  const auto now_is = Clock::now();
  const auto counts = [now_is](const Upload& upload) { return upload.begun + kCounts > now_is; };
  const auto all = std::count_if(now.begin(), now.end(), counts);
  return static_cast<std::size_t>(all) >= kAtOnceMax && std::any_of(now.begin(), now.end(), [&](const Upload& upload) {
           return counts(upload) && upload.node != node;
         });
}

std::size_t UploadSlots::waiting() const {
  const MutexLock lock(uploads_->mutex);
  return uploads_->waiting.size();
}

std::shared_ptr<const void> UploadSlots::begin(std::string_view node, Traffic traffic, bool waits) {
  UniqueLock lock(uploads_->mutex);
  if (waits && (!uploads_->waiting.empty() || uploads_->is_full_for(node))) {
    if (uploads_->waiting.size() >= kWaitingMax) return nullptr;
    const auto place = uploads_->waiting.insert(std::ranges::upper_bound(uploads_->waiting, traffic), traffic);
    uploads_->ended.wait_for(lock, kWaits, [&]() WEFT_REQUIRES(uploads_->mutex) {
      return place == uploads_->waiting.begin() && !uploads_->is_full_for(node);
    });
    uploads_->waiting.erase(place);
    uploads_->ended.notify_all();
  }
  const auto upload = uploads_->now.insert(uploads_->now.end(), {std::string(node), Clock::now()});
  lock.unlock();
  return std::make_shared<const Ticket>(uploads_, upload);
}

}  // namespace weft

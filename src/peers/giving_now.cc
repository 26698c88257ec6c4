#include "peers/giving_now.h"

#include <algorithm>
#include <utility>

namespace weft {

struct GivingNow::Ticket {
  Ticket(std::shared_ptr<Gifts> of, std::list<Gift>::iterator which) : gifts(std::move(of)), gift(which) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    {
      const std::lock_guard lock(gifts->mutex);
      gifts->now.erase(gift);
    }
    gifts->ended.notify_all();
  }
  const std::shared_ptr<Gifts> gifts;
  const std::list<Gift>::iterator gift;
};

// True if all slots are in use, not only by `node`: a single peer never waits for itself.
bool GivingNow::Gifts::is_full_for(std::string_view node) const {
  const auto now_is = Clock::now();
  const auto counts = [now_is](const Gift& gift) { return gift.begun + kCounts > now_is; };
  const auto all = std::count_if(now.begin(), now.end(), counts);
  return static_cast<std::size_t>(all) >= kAtOnceMax &&
         std::any_of(now.begin(), now.end(), [&](const Gift& gift) { return counts(gift) && gift.node != node; });
}

bool GivingNow::is_busy() const {
  const std::lock_guard lock(gifts_->mutex);
  return gifts_->now.size() >= kBusy;
}

std::size_t GivingNow::waiting() const {
  const std::lock_guard lock(gifts_->mutex);
  return gifts_->waiting.size();
}

std::shared_ptr<const void> GivingNow::begin(std::string_view node, bool waits) {
  std::unique_lock lock(gifts_->mutex);
  if (waits && (!gifts_->waiting.empty() || gifts_->is_full_for(node))) {
    if (gifts_->waiting.size() >= kWaitingMax) return nullptr;
    const auto place = gifts_->waiting.insert(gifts_->waiting.end(), std::this_thread::get_id());
    gifts_->ended.wait_for(lock, kWaits,
                           [&] { return place == gifts_->waiting.begin() && !gifts_->is_full_for(node); });
    gifts_->waiting.erase(place);
    gifts_->ended.notify_all();
  }
  const auto gift = gifts_->now.insert(gifts_->now.end(), {std::string(node), Clock::now()});
  lock.unlock();
  return std::make_shared<const Ticket>(gifts_, gift);
}

}  // namespace weft

#include "fuse/state/publish_renames.h"

#include <utility>

namespace weft {
namespace {

constexpr std::chrono::milliseconds kHeldMin{100};  // of a publish: less is not worth its begin

bool is_same(const PublishOrder& a, const PublishOrder& b) {
  return a.dir == b.dir && a.name == b.name && a.to == b.to && a.model == b.model && a.tag == b.tag;
}

}  // namespace

const PublishRenames::Known* PublishRenames::find(std::uint32_t thread, uid_t user) const {
  const auto found = renames_.find(thread);
  if (found == renames_.end() || found->second.rename.order.user.uid != user) return nullptr;
  return found->second.until < time_.now() ? nullptr : &found->second;
}

// Threads that were killed send no second RENAME.
void PublishRenames::put(PublishRename rename, Deadline until) {
  std::erase_if(renames_, [now = time_.now()](const auto& known) { return known.second.until < now; });
  const std::uint32_t thread = rename.order.thread;
  renames_.insert_or_assign(thread, Known{std::move(rename), until});
}

void PublishRenames::ask(PublishOrder order) {
  const MutexLock lock(mutex_);
  put({std::move(order), {}}, time_.now() + kRenameAgain);
}

void PublishRenames::begin(const PublishOrder& order) {
  const MutexLock lock(mutex_);
  put({order, {}}, Deadline::max());
}

void PublishRenames::restore(BegunPublish begun) {
  const MutexLock lock(mutex_);
  put({std::move(begun.order), begun.published ? std::optional(Status()) : std::nullopt}, time_.now() + kRenameAgain);
}

void PublishRenames::end(std::uint32_t thread, Status outcome) {
  const MutexLock lock(mutex_);
  const auto found = renames_.find(thread);
  if (found == renames_.end()) return;
  found->second.rename.outcome = std::move(outcome);
  found->second.until = time_.now() + kRenameAgain;
}

void PublishRenames::forget(std::uint32_t thread) {
  const MutexLock lock(mutex_);
  renames_.erase(thread);
}

std::optional<PublishRename> PublishRenames::asked(const PublishOrder& order, std::uint64_t request) const {
  const MutexLock lock(mutex_);
  const Known* known = find(order.thread, order.user.uid);
  if (known == nullptr || !is_same(known->rename.order, order)) return std::nullopt;
  const std::uint64_t answered = known->rename.order.answered;
  return answered == 0 || answered == request ? std::optional(known->rename) : std::nullopt;
}

std::optional<PublishOrder> PublishRenames::waiting(std::uint32_t thread, uid_t user, std::uint64_t request) const {
  const MutexLock lock(mutex_);
  const Known* known = find(thread, user);
  if (known == nullptr || known->rename.outcome) return std::nullopt;
  const PublishOrder& order = known->rename.order;
  const bool is_its = order.request == 0 || order.request == request;
  return is_its ? std::optional(order) : std::nullopt;
}

std::optional<PublishOrder> PublishRenames::published(std::uint32_t thread, uid_t user, Ino dir,
                                                      const std::string& name) const {
  const MutexLock lock(mutex_);
  const Known* known = find(thread, user);
  if (known == nullptr || !known->rename.outcome || !known->rename.outcome->ok()) return std::nullopt;
  const PublishOrder& order = known->rename.order;
  return order.answered == 0 && order.dir == dir && order.name == name ? std::optional(order) : std::nullopt;
}

std::optional<HeldTime::Hold> HeldTime::begin(uid_t user) {
  const MutexLock lock(mutex_);
  const Deadline now = time_.now(), oldest = now - 2 * kHeldMax;
  std::erase_if(used_, [oldest](const auto& known) { return known.second < oldest; });
  Deadline& used = used_.emplace(user, oldest).first->second;
  if (used > now - 2 * kHeldMin) return std::nullopt;
  const Hold hold{now, now + (now - used) / 2, used};
  used = Deadline::max();
  return hold;
}

void HeldTime::end(uid_t user, const Hold& hold) {
  const MutexLock lock(mutex_);
  used_[user] = hold.used + 2 * (time_.now() - hold.begun);
}

}  // namespace weft

#include "base/user_shares.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace weft {
namespace {

bool fits(std::uint64_t count, std::uint64_t held, std::uint64_t max) {
  return held <= max && count <= max - held;
}

}  // namespace

struct UserShares::Ledger {
  explicit Ledger(uid_t server) : own(server) {}

  bool is_administrator(uid_t user) const { return user == 0 || user == own; }

  bool take(const Bound& bound, uid_t user, std::uint64_t count) {
    const std::lock_guard lock(mutex);
    if (!fits(count, all, bound.max)) return false;
    if (!is_administrator(user)) {
      const auto known = each.find(user);
      const std::uint64_t held = known == each.end() ? 0 : known->second;
      if (!fits(count, held, bound.each_max) || !fits(count, others, bound.others_max)) return false;
    }
    give(user, count);
    return true;
  }

  // Call with mutex held.
  void give(uid_t user, std::uint64_t count) {
    all += count;
    if (is_administrator(user)) return;
    others += count;
    each[user] += count;
  }

  void give_back(uid_t user, std::uint64_t count) {
    const std::lock_guard lock(mutex);
    all -= count;
    if (is_administrator(user)) return;
    others -= count;
    const auto held = each.find(user);
    held->second -= count;
    if (held->second == 0) each.erase(held);
  }

  const uid_t own;
  std::mutex mutex;
  std::uint64_t all = 0;                // guarded by mutex, as the next two
  std::uint64_t others = 0;             // of all users except administrators
  std::map<uid_t, std::uint64_t> each;  // of each user except administrators
};

UserShares::Bound UserShares::bound_of(std::uint64_t max) {
  return {max / 2, max - max / 4, max};
}

UserShares::UserShares(std::function<Bound()> bound, uid_t own)
    : bound_(std::move(bound)), ledger_(std::make_shared<Ledger>(own)) {}

std::shared_ptr<void> UserShares::take(uid_t user, std::uint64_t count) {
  if (!ledger_->take(bound_(), user, count)) return nullptr;
  return {ledger_.get(), [ledger = ledger_, user, count](void*) { ledger->give_back(user, count); }};
}

std::uint64_t UserShares::most_for(uid_t user) const {
  const Bound bound = bound_();
  return ledger_->is_administrator(user) ? bound.max : std::min({bound.each_max, bound.others_max, bound.max});
}

bool UserShares::add(uid_t user, std::uint64_t count) {
  return ledger_->take(bound_(), user, count);
}

void UserShares::recount(const std::map<uid_t, std::uint64_t>& held) {
  const std::lock_guard lock(ledger_->mutex);
  ledger_->all = ledger_->others = 0;
  ledger_->each.clear();
  for (const auto& [user, count] : held) ledger_->give(user, count);
}

}  // namespace weft

#include "control/user_shares.h"

#include <unistd.h>

#include <array>
#include <map>
#include <mutex>

#include "base/limits.h"

namespace weft::control {
namespace {

struct Bound {
  std::size_t each_max;    // for one user that is neither root nor the daemon's user
  std::size_t others_max;  // for all such users together
  std::size_t max;         // for all users
};

// By UserShares::Kind.
constexpr std::array<Bound, 3> kBounds = {
    {{limits::kControlConnectionsEachMax, limits::kControlConnectionsOthersMax, limits::kControlConnectionsMax},
     {limits::kControlRunningEachMax, limits::kControlRunningOthersMax, limits::kControlRunningMax},
     {limits::kControlFdsEachMax, limits::kControlFdsOthersMax, limits::kControlFdsMax}}};

bool is_administrator(uid_t user) {
  return user == 0 || user == ::geteuid();
}

}  // namespace

struct UserShares::Ledger {
  using Counts = std::array<std::size_t, kBounds.size()>;

  bool take(std::size_t kind, uid_t user, std::size_t count) {
    const Bound& bound = kBounds[kind];
    const std::lock_guard lock(mutex);
    if (count > bound.max - all[kind]) return false;
    if (!is_administrator(user)) {
      const auto known = each.find(user);
      const std::size_t held = known == each.end() ? 0 : known->second[kind];
      if (count > bound.each_max - held || count > bound.others_max - others[kind]) return false;
      others[kind] += count;
      each[user][kind] += count;
    }
    all[kind] += count;
    return true;
  }

  void give_back(std::size_t kind, uid_t user, std::size_t count) {
    const std::lock_guard lock(mutex);
    all[kind] -= count;
    if (is_administrator(user)) return;
    others[kind] -= count;
    const auto held = each.find(user);
    held->second[kind] -= count;
    if (held->second == Counts{}) each.erase(held);
  }

  std::mutex mutex;
  Counts all{};                  // guarded by mutex, as the next two
  Counts others{};               // of all users except administrators
  std::map<uid_t, Counts> each;  // of each user except administrators
};

UserShares::UserShares() : ledger_(std::make_shared<Ledger>()) {}

std::shared_ptr<void> UserShares::take(Kind kind, uid_t user, std::size_t count) {
  const auto at = static_cast<std::size_t>(kind);
  if (!ledger_->take(at, user, count)) return nullptr;
  return {ledger_.get(), [ledger = ledger_, at, user, count](void*) { ledger->give_back(at, user, count); }};
}

}  // namespace weft::control

#include "registry/etcd_claim.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "os/sys.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Another node may move first between a look and a transaction. Later calls then try again.
constexpr unsigned kClaimTriesMax = 3;
constexpr std::uint64_t kLastKeptS = 3600;

// The three keys, as they are.
struct Line {
  std::optional<ClaimHolder> holder, next, last;
};

class EtcdClaim final : public Claim {
 public:
  EtcdClaim(OwnRegistry& own, ClaimHolder self, std::string_view key, std::chrono::seconds ttl,
            std::function<Status()> show)
      : own_(own),
        self_(std::move(self)),
        keys_{own.keys().claim(key), own.keys().claim_next(key), own.keys().claim_last(key)},
        ttl_(ttl),
        show_(std::move(show)) {}
  // If etcd does not answer, the lease expires by itself.
  ~EtcdClaim() override {
    if (lease_ == 0) return;
    const Status noted = held_ ? note_last() : Status{};
    if (noted.ok() || noted.error().code != Errc::unreachable) drop_lease();
  }

  Result<ClaimStanding> stand() override {
    if (lease_ != 0) WEFT_CHECK(renew());
    for (unsigned tries = 0; !held_; ++tries) {
      WEFT_TRY(Line line, look());
      const bool is_free = !line.holder && (is_next_ || !line.next);
      if (!is_free && (is_next_ || line.next)) return waiting(line);
      WEFT_TRY(const bool moved, is_free ? take() : line_up());
      if (!moved && tries < kClaimTriesMax) continue;
      if (!held_) return waiting(line);
      last_ = std::move(line.last).value_or(ClaimHolder{});
      WEFT_CHECK(show_());
    }
    return ClaimStanding{.held = true, .last = last_};
  }

 private:
  enum Key : std::uint8_t { holder, next, last };

  // A free claim is as good as that of the node that is next.
  ClaimStanding waiting(const Line& line) const {
    const auto& before = line.holder ? line.holder : line.next;
    return {.next = is_next_, .holder = before.value_or(ClaimHolder{})};
  }

  Result<Line> look() {
    etcd::Txn txn;
    for (const std::string& key : keys_) txn.then.emplace_back(etcd::query_of(key));
    WEFT_TRY(const etcd::TxnAnswer answer, own_.read(std::move(txn)));
    Line line;
    WEFT_TRY(line.holder, read(answer, Key::holder));
    WEFT_TRY(line.next, read(answer, Key::next));
    WEFT_TRY(line.last, read(answer, Key::last));
    return line;
  }

  Result<std::optional<ClaimHolder>> read(const etcd::TxnAnswer& answer, Key key) const {
    const auto& items = answer.ranges.at(key).items;
    if (items.empty()) return std::optional<ClaimHolder>();
    WEFT_TRY(auto one, open_claim(items.front().value, own_.keys().bound(keys_[key])));
    return std::optional(std::move(one));
  }

  etcd::Put put(Key key, std::uint64_t lease) {
    self_.since_ns = now_ns();
    return {keys_[key], seal(self_, own_.keys().bound(keys_[key])), lease};
  }

  // Returns false if another node was first.
  Result<bool> take() {
    WEFT_CHECK(need_lease());
    etcd::Txn txn;
    txn.compares.push_back({{keys_[Key::holder], {}}});  // there is no such key
    if (!is_next_) txn.compares.push_back({{keys_[Key::next], {}}});
    txn.then.emplace_back(put(Key::holder, lease_));
    if (is_next_) txn.then.emplace_back(etcd::Delete{{keys_[Key::next], {}}});
    WEFT_TRY(held_, change(std::move(txn)));
    if (held_) is_next_ = false;
    return held_;
  }

  Result<bool> line_up() {
    WEFT_CHECK(need_lease());
    etcd::Txn txn;
    txn.compares.push_back({{keys_[Key::next], {}}});
    txn.then.emplace_back(put(Key::next, lease_));
    WEFT_TRY(is_next_, change(std::move(txn)));
    return is_next_;
  }

  // A node that has no place needs no lease.
  Result<bool> change(etcd::Txn txn) {
    WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
    if (!answer.succeeded && !is_next_) drop_lease();
    return answer.succeeded;
  }

  Status need_lease() {
    if (lease_ != 0) return {};
    WEFT_TRY(const etcd::LeaseAnswer granted, own_.client().grant_lease(static_cast<std::uint64_t>(ttl_.count())));
    lease_ = granted.id;
    renewed_ = Clock::now();
    return {};
  }

  void drop_lease() { static_cast<void>(own_.client().revoke_lease(std::exchange(lease_, 0))); }

  // While etcd does not answer, the lease lives on until its time is over.
  Status renew() {
    const auto now = Clock::now();
    if (now < renewed_ + ttl_ / 4) return {};
    const auto answer = own_.client().keep_alive(lease_);
    if (answer.ok() && answer->ttl_s != 0) return renewed_ = now, Status{};
    if (!answer.ok() && now < renewed_ + ttl_) return {};
    lease_ = 0;
    is_next_ = false;
    if (!std::exchange(held_, false)) return answer.ok() ? Status{} : Status{answer.error()};
    return Error{Errc::changed, answer.ok() ? "the claim has expired" : answer.error().message};
  }

  Status note_last() {
    WEFT_TRY(const etcd::LeaseAnswer granted, own_.client().grant_lease(kLastKeptS));
    etcd::Txn txn;
    txn.then.emplace_back(put(Key::last, granted.id));
    WEFT_CHECK(own_.change(std::move(txn)));
    return {};
  }

  OwnRegistry& own_;
  ClaimHolder self_;
  const std::array<std::string, 3> keys_;  // by Key
  const std::chrono::seconds ttl_;
  const std::function<Status()> show_;
  std::uint64_t lease_ = 0;  // of the keys that this node has put; 0: none
  bool held_ = false, is_next_ = false;
  ClaimHolder last_;
  Clock::time_point renewed_{};
};

}  // namespace

std::unique_ptr<Claim> claim_in_etcd(OwnRegistry& own, ClaimHolder self, std::string_view key,
                                     std::chrono::seconds lease, std::function<Status()> show) {
  return std::make_unique<EtcdClaim>(own, std::move(self), key, lease, std::move(show));
}

}  // namespace weft

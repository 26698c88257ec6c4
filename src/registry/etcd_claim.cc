#include "registry/etcd_claim.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/sys.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Another node may move first between a look and a transaction. Later calls then try again.
constexpr unsigned kClaimTriesMax = 3;
constexpr std::uint64_t kLastKeptS = 3600;

// A query for the line may find more places than kClaimLineMax: nodes that lined up at the same time.
constexpr std::uint64_t kLineRead = 4 * kClaimLineMax;

struct Place {
  ClaimHolder node;
  std::string key;
  std::uint64_t made = 0;  // revision
};
struct Line {
  std::optional<ClaimHolder> holder, last;
  std::vector<Place> places;  // the first one first
};

class EtcdClaim final : public Claim {
 public:
  EtcdClaim(OwnRegistry& own, ClaimHolder self, std::string_view key, std::chrono::seconds ttl,
            std::function<Status()> show)
      : own_(own),
        self_(std::move(self)),
        digits_(key),
        holder_key_(own.keys().claim(key)),
        last_key_(own.keys().claim_last(key)),
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
      const bool is_free = !line.holder && (line.places.empty() || line.places.front().key == place_);
      const bool may_line_up = place_.empty() && line.places.size() < kClaimLineMax;
      if ((!is_free && !may_line_up) || tries == kClaimTriesMax) return waiting(line);
      WEFT_CHECK(is_free ? take() : line_up());
      if (!held_) continue;
      last_ = std::move(line.last).value_or(ClaimHolder{});
      WEFT_CHECK(show_());
    }
    return ClaimStanding{.held = true, .last = last_};
  }

 private:
  // The first one in line of a free claim is as good as its holder.
  ClaimStanding waiting(const Line& line) const {
    std::vector<const ClaimHolder*> nodes;
    if (line.holder) nodes.push_back(&*line.holder);
    ClaimStanding standing;
    for (const Place& place : line.places) {
      const std::size_t number = nodes.size();
      if (place.key == place_ && number > 0) standing.ahead = *nodes[(number - 1) / kClaimFollowersMax];
      nodes.push_back(&place.node);
    }
    if (!nodes.empty()) standing.holder = *nodes.front();
    return standing;
  }

  Result<Line> look() {
    etcd::Txn txn;
    txn.then.emplace_back(etcd::query_of(holder_key_));
    txn.then.emplace_back(etcd::query_of(last_key_));
    etcd::RangeQuery places;
    places.keys = own_.keys().claim_line(digits_);
    places.limit = kLineRead;
    txn.then.emplace_back(std::move(places));
    WEFT_TRY(const etcd::TxnAnswer answer, own_.read(std::move(txn)));
    Line line;
    WEFT_TRY(line.holder, read(answer.ranges.at(0)));
    WEFT_TRY(line.last, read(answer.ranges.at(1)));
    for (const etcd::KeyValue& item : answer.ranges.at(2).items) {
      WEFT_TRY(ClaimHolder node, open_claim(item.value, own_.keys().bound(item.key)));
      line.places.push_back({std::move(node), item.key, item.create_revision});
    }
    std::ranges::sort(line.places, {}, &Place::made);
    return line;
  }

  Result<std::optional<ClaimHolder>> read(const etcd::RangeAnswer& answer) const {
    if (answer.items.empty()) return std::optional<ClaimHolder>();
    const etcd::KeyValue& item = answer.items.front();
    WEFT_TRY(auto one, open_claim(item.value, own_.keys().bound(item.key)));
    return std::optional(std::move(one));
  }

  etcd::Put put(const std::string& key, std::uint64_t lease) {
    self_.since_ns = now_ns();
    return {key, seal(self_, own_.keys().bound(key)), lease};
  }

  // Sets held_ unless another node was first. A place that is first in line stays first: later nodes line up behind it.
  Status take() {
    WEFT_CHECK(need_lease());
    etcd::Txn txn;
    txn.compares.push_back({{holder_key_, {}}});  // there is no such key
    if (place_.empty())
      txn.compares.push_back({own_.keys().claim_line(digits_)});
    else
      txn.then.emplace_back(etcd::Delete{{place_, {}}});
    txn.then.emplace_back(put(holder_key_, lease_));
    WEFT_TRY(held_, change(std::move(txn)));
    if (held_) place_.clear();
    return {};
  }

  Status line_up() {
    WEFT_CHECK(need_lease());
    std::string place = own_.keys().claim_place(digits_, lease_);
    etcd::Txn txn;
    txn.then.emplace_back(put(place, lease_));
    WEFT_TRY(const bool lined_up, change(std::move(txn)));
    if (lined_up) place_ = std::move(place);
    return {};
  }

  // A node that has no place needs no lease.
  Result<bool> change(etcd::Txn txn) {
    WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
    if (!answer.succeeded && place_.empty()) drop_lease();
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
    place_.clear();
    if (!std::exchange(held_, false)) return answer.ok() ? Status{} : Status{answer.error()};
    return Error{Errc::changed, answer.ok() ? "the claim has expired" : answer.error().message};
  }

  Status note_last() {
    WEFT_TRY(const etcd::LeaseAnswer granted, own_.client().grant_lease(kLastKeptS));
    etcd::Txn txn;
    txn.then.emplace_back(put(last_key_, granted.id));
    WEFT_CHECK(own_.change(std::move(txn)));
    return {};
  }

  OwnRegistry& own_;
  ClaimHolder self_;
  const std::string digits_, holder_key_, last_key_;
  const std::chrono::seconds ttl_;
  const std::function<Status()> show_;
  std::uint64_t lease_ = 0;  // of the keys that this node has put; 0: none
  std::string place_;        // the key of this node's place in line; "": none
  bool held_ = false;
  ClaimHolder last_;
  Clock::time_point renewed_{};
};

}  // namespace

std::unique_ptr<Claim> claim_in_etcd(OwnRegistry& own, ClaimHolder self, std::string_view key,
                                     std::chrono::seconds lease, std::function<Status()> show) {
  return std::make_unique<EtcdClaim>(own, std::move(self), key, lease, std::move(show));
}

}  // namespace weft

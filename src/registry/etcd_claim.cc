#include "registry/etcd_claim.h"

#include <fmt/core.h>

#include <utility>

#include "os/sys.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

class EtcdClaim final : public Claim {
 public:
  EtcdClaim(etcd::Client& client, std::uint64_t lease, std::chrono::seconds ttl)
      : client_(client), lease_(lease), ttl_(ttl) {}
  // Without an answer the lease expires by itself.
  ~EtcdClaim() override { static_cast<void>(client_.revoke_lease(lease_)); }

  // While etcd does not answer, the lease lives on until its time is over.
  Status keep() override {
    const auto now = Clock::now();
    if (now < renewed_ + ttl_ / 4) return {};
    const auto answer = client_.keep_alive(lease_);
    if (answer.ok() && answer->ttl_s != 0) return renewed_ = now, Status{};
    if (!answer.ok() && now < renewed_ + ttl_) return {};
    return Error{Errc::changed, answer.ok() ? "the claim has expired" : answer.error().message};
  }

 private:
  etcd::Client& client_;
  const std::uint64_t lease_;
  const std::chrono::seconds ttl_;
  Clock::time_point renewed_ = Clock::now();
};

}  // namespace

Result<ClaimOutcome> claim_in_etcd(OwnRegistry& own, const Member& self, std::string_view key,
                                   std::chrono::seconds lease) {
  const std::string name = own.keys().claim(key);
  WEFT_TRY(const etcd::RangeAnswer found, own.client().range(etcd::query_of(name)));
  if (!found.items.empty()) {
    WEFT_TRY(const Member holder, open_member(found.items.front().value, own.keys().bound(name)));
    return ClaimOutcome{nullptr, holder.name, holder.since_ns};
  }
  WEFT_TRY(const etcd::LeaseAnswer granted, own.client().grant_lease(static_cast<std::uint64_t>(lease.count())));
  auto claim = std::make_unique<EtcdClaim>(own.client(), granted.id, lease);
  Member holder = self;
  holder.since_ns = now_ns();
  etcd::Txn txn;
  txn.compares.push_back({{name, {}}});  // there is no such key
  txn.then.emplace_back(etcd::Put{name, seal(holder, own.keys().bound(name)), granted.id});
  WEFT_TRY(const etcd::TxnAnswer answer, own.change(std::move(txn)));
  if (!answer.succeeded) return ClaimOutcome{nullptr, "another node"};
  return ClaimOutcome{std::move(claim)};
}

}  // namespace weft

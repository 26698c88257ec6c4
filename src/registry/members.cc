#include "registry/members.h"

#include <utility>

#include "os/sys.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

Worker::Pause renew_every(std::chrono::seconds lease) {
  return Worker::Pause(lease) / 4;
}

}  // namespace

void MemberList::reset(const std::vector<std::pair<std::uint64_t, Member>>& members) {
  std::lock_guard lock(mutex_);
  for (auto& [node, known] : known_) known = {0, std::nullopt, std::move(known.last)};
  for (const auto& [revision, member] : members) known_[member.node] = {revision, member, member};
}

bool MemberList::set(std::uint64_t revision, const std::string& node, std::optional<Member> member) {
  std::lock_guard lock(mutex_);
  auto at = known_.find(node);
  if (at != known_.end() && at->second.revision >= revision) return false;
  Known& known = known_[node];
  if (member) known.last = *member;
  known.revision = revision;
  known.member = std::move(member);
  return true;
}

std::vector<Member> MemberList::list() const {
  std::lock_guard lock(mutex_);
  std::vector<Member> out;
  for (const auto& [node, known] : known_)
    if (known.member) out.push_back(*known.member);
  return out;
}

std::vector<Member> MemberList::left() const {
  std::lock_guard lock(mutex_);
  std::vector<Member> out;
  for (const auto& [node, known] : known_)
    if (!known.member && !known.last.node.empty()) out.push_back(known.last);
  return out;
}

Membership::Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease,
                       std::function<void(bool)> asked)
    : client_(client),
      keys_(keys),
      ttl_(lease),
      asked_(std::move(asked)),
      worker_("membership", RetryPause(renew_every(lease))) {}

void Membership::end() {
  worker_.end();
  if (const std::uint64_t lease = std::exchange(lease_, 0); lease != 0) static_cast<void>(client_.revoke_lease(lease));
}

void Membership::begin(Member self) {
  {
    const std::lock_guard lock(mutex_);
    if (self_.node.empty()) {
      self.since_ns = now_ns();
      if (key_proof_) self.key_proof = *key_proof_;
      self_ = std::move(self);
    }
  }
  if (!worker_.start([this] { return round(); })) worker_.wake();
}

void Membership::set_key_proof(std::string proof) {
  {
    const std::lock_guard lock(mutex_);
    key_proof_ = proof;
    if (self_.node.empty()) return;
    self_.key_proof = std::move(proof);
  }
  worker_.wake();
}

Member Membership::self() const {
  const std::lock_guard lock(mutex_);
  return self_;
}

Status Membership::put(const Member& self, std::uint64_t lease) {
  std::string key = keys_.member(self.node);
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, seal(self, keys_.bound(key)), lease});
  WEFT_CHECK(client_.txn(txn));
  lease_ = lease;
  put_ = self;
  return {};
}

// Renews the lease. If the lease has expired, its key is gone too, so takes a new lease and puts the key again.
Status Membership::renew(const Member& self) {
  if (lease_ != 0) {
    WEFT_TRY(etcd::LeaseAnswer answer, client_.keep_alive(lease_));
    if (answer.ttl_s != 0) return self == put_ ? Status{} : put(self, lease_);
    lease_ = 0;
  }
  WEFT_TRY(etcd::LeaseAnswer granted, client_.grant_lease(static_cast<std::uint64_t>(ttl_.count())));
  return put(self, granted.id);
}

Result<Worker::Pause> Membership::round() {
  const Status renewed = renew(self());
  asked_(renewed.ok() || (renewed.error().code != Errc::unreachable && renewed.error().code != Errc::timed_out));
  if (!renewed.ok()) return renewed.error();
  return renew_every(ttl_);
}

}  // namespace weft

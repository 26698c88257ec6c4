#include "registry/members.h"

#include <utility>

#include "os/sys.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

Worker::Pause renew_every(std::chrono::seconds lease) {
  return Worker::Pause(lease) / 4;
}

constexpr std::uint64_t kSeenAgainNs = 600'000'000'000;  // between two puts of a node's record

}  // namespace

void MemberList::reset(const std::vector<std::pair<std::uint64_t, Member>>& members) {
  std::lock_guard lock(mutex_);
  for (auto& [node, known] : known_) known = {};
  for (const auto& [revision, member] : members) known_[member.node] = {revision, member};
}

bool MemberList::set(std::uint64_t revision, const std::string& node, std::optional<Member> member) {
  std::lock_guard lock(mutex_);
  auto at = known_.find(node);
  if (at != known_.end() && at->second.revision >= revision) return false;
  Known& known = known_[node];
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

void MemberList::reset_nodes(std::vector<KnownNode> nodes) {
  std::lock_guard lock(mutex_);
  nodes_.clear();
  for (KnownNode& node : nodes) nodes_[node.node] = std::move(node);
}

void MemberList::set_node(const std::string& node, std::optional<KnownNode> record) {
  std::lock_guard lock(mutex_);
  if (record)
    nodes_[node] = *std::move(record);
  else
    nodes_.erase(node);
}

std::vector<KnownNode> MemberList::nodes() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, KnownNode> out = nodes_;
  for (const auto& [node, known] : known_) {
    if (!known.member) continue;
    KnownNode& one = out[node];
    if (one.first_ns == 0) one.first_ns = known.member->since_ns;
    one = {node, known.member->name, known.member->address, one.first_ns, now_ns(), true};
  }
  std::vector<KnownNode> list;
  for (auto& [node, one] : out) list.push_back(std::move(one));
  return list;
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
  const std::uint64_t lease = std::exchange(lease_, 0);
  if (lease == 0) return;
  static_cast<void>(client_.revoke_lease(lease));
  static_cast<void>(put_record(put_));
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

// Puts the record of this node. The first put after the start keeps the time when the node first joined.
Status Membership::put_record(const Member& self) {
  const std::string key = keys_.node(self.node);
  KnownNode record{self.node, self.name, self.address, record_.first_ns, now_ns()};
  if (record_.node.empty()) {
    WEFT_TRY(const etcd::RangeAnswer answer, client_.range({{key, {}}, 0, 0, false, false}));
    if (!answer.items.empty())
      if (const auto before = open_node(answer.items[0].value, keys_.bound(key)); before.ok())
        record.first_ns = before->first_ns;
    if (record.first_ns == 0) record.first_ns = record.last_ns;
  }
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, seal(record, keys_.bound(key)), 0});
  WEFT_CHECK(client_.txn(txn));
  record_ = std::move(record);
  return {};
}

// Renews the lease. If the lease has expired, its key is gone too, so takes a new lease and puts the key again.
Status Membership::renew(const Member& self) {
  if (lease_ != 0) {
    WEFT_TRY(etcd::LeaseAnswer answer, client_.keep_alive(lease_));
    if (answer.ttl_s != 0) {
      if (now_ns() - record_.last_ns > kSeenAgainNs) WEFT_CHECK(put_record(self));
      return self == put_ ? Status{} : put(self, lease_);
    }
    lease_ = 0;
  }
  WEFT_TRY(etcd::LeaseAnswer granted, client_.grant_lease(static_cast<std::uint64_t>(ttl_.count())));
  WEFT_CHECK(put(self, granted.id));
  return put_record(self);
}

Result<Worker::Pause> Membership::round() {
  const Status renewed = renew(self());
  asked_(renewed.ok() || (renewed.error().code != Errc::unreachable && renewed.error().code != Errc::timed_out));
  if (!renewed.ok()) return renewed.error();
  return renew_every(ttl_);
}

}  // namespace weft

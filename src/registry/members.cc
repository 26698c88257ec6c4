#include "registry/members.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "os/sys.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

constexpr auto kLeaseLate = std::chrono::seconds(2);  // etcd ends a lease so late at most, if it is not restarted

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
    one = {node, known.member->name, known.member->address, one.first_ns, now_ns(), true, one.drained_ns};
  }
  std::vector<KnownNode> list;
  for (auto& [node, one] : out) list.push_back(std::move(one));
  return list;
}

Membership::Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease, Calls calls)
    : client_(client),
      keys_(keys),
      ttl_(lease),
      calls_(std::move(calls)),
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

// Puts the key unless it has changed since `revision`.
Status Membership::put(const Member& self, std::uint64_t lease, std::uint64_t revision) {
  std::string key = keys_.member(self.node);
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, etcd::Target::mod_revision, etcd::Relation::equal, revision});
  txn.then.emplace_back(etcd::Put{key, seal(self, keys_.bound(key)), lease});
  WEFT_TRY(const etcd::TxnAnswer answer, client_.txn(txn));
  if (!answer.succeeded) return Error{Errc::busy, fmt::format("{}: it has changed meanwhile", key)};
  lease_ = lease;
  put_ = self;
  return {};
}

// Puts the record of this node. It keeps the time when the node first joined and, except for the first put after the
// start, that of a drain, which another node records.
Status Membership::put_record(const Member& self) {
  const std::string key = keys_.node(self.node);
  KnownNode record{self.node, self.name, self.address, record_.first_ns, now_ns()};
  WEFT_TRY(const etcd::RangeAnswer answer, client_.range(etcd::query_of(key)));
  if (!answer.items.empty())
    if (const auto before = open_node(answer.items[0].value, keys_.bound(key)); before.ok()) {
      record.first_ns = before->first_ns;
      if (!record_.node.empty()) record.drained_ns = before->drained_ns;
    }
  if (record.first_ns == 0) record.first_ns = record.last_ns;
  etcd::Txn txn;
  const std::uint64_t revision = answer.items.empty() ? 0 : answer.items[0].mod_revision;
  txn.compares.push_back({{key, {}}, etcd::Target::mod_revision, etcd::Relation::equal, revision});
  txn.then.emplace_back(etcd::Put{key, seal(record, keys_.bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer put, client_.txn(txn));
  if (!put.succeeded) return Error{Errc::busy, fmt::format("{}: it has changed meanwhile", key)};
  record_ = std::move(record);
  return {};
}

// Returns the revision of this node's key that this process may replace; 0 if there is no key. Errc::exists: another
// weftd has put it. A value that does not verify is replaced.
Result<std::uint64_t> Membership::look(const Member& self) {
  const std::string key = keys_.member(self.node);
  WEFT_TRY(const etcd::RangeAnswer known, client_.range(etcd::query_of(key)));
  std::optional<Member> other;
  if (!known.items.empty())
    if (auto member = open_member(known.items[0].value, keys_.bound(key)); member.ok()) other = *std::move(member);
  const bool is_rival = other && other->process != self.process && other->place != self.place;
  note_rival(is_rival ? *other : Member{});
  WEFT_CHECK(check_sole({}));
  return known.items.empty() ? 0 : known.items[0].mod_revision;
}

// The lease of a weftd that has ended ends too: then the key is gone.
void Membership::note_rival(const Member& other) {
  const auto now = std::chrono::steady_clock::now();
  if (std::exchange(rival_, other.process) != other.process) rival_since_ = now;
  std::optional<Error> error;
  if (!rival_.empty())
    error =
        Error{Errc::exists,
              fmt::format("another weftd is this node already: {} at {}; expected one weftd for a store and all its "
                          "copies",
                          printable(other.name), printable(other.address.empty() ? "no address" : other.address))};
  const bool renews = error && now - rival_since_ > ttl_ + kLeaseLate;
  {
    const std::lock_guard lock(mutex_);
    has_looked_ = true;
    rival_error_ = error;
    rival_renews_ = renews;
  }
  looked_.notify_all();
  if (renews && !std::exchange(has_refused_, true) && calls_.refused) calls_.refused(*error);
}

Status Membership::check_sole(std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  looked_.wait_until(lock, deadline, [&] { return has_looked_ && (!rival_error_ || rival_renews_); });
  return rival_error_ ? Status{*rival_error_} : Status{};
}

// Renews the lease. If the lease has expired, its key is gone too, so takes a new lease and puts the key again.
Status Membership::renew(const Member& self) {
  WEFT_TRY(const std::uint64_t revision, look(self));
  if (lease_ != 0) {
    WEFT_TRY(etcd::LeaseAnswer answer, client_.keep_alive(lease_));
    if (answer.ttl_s != 0) {
      if (now_ns() - record_.last_ns > kSeenAgainNs) WEFT_CHECK(put_record(self));
      return self == put_ && revision != 0 ? Status{} : put(self, lease_, revision);
    }
    lease_ = 0;
    return Error{Errc::changed, "the lease has ended"};  // and its key, so the revision is not known
  }
  WEFT_TRY(etcd::LeaseAnswer granted, client_.grant_lease(static_cast<std::uint64_t>(ttl_.count())));
  WEFT_CHECK(put(self, granted.id, revision));
  return put_record(self);
}

Result<Worker::Pause> Membership::round() {
  Status renewed = renew(self());
  if (!renewed.ok() && renewed.error().code == Errc::changed) renewed = renew(self());
  calls_.asked(renewed.ok() || (renewed.error().code != Errc::unreachable && renewed.error().code != Errc::timed_out));
  if (!renewed.ok()) return renewed.error();
  return renew_every(ttl_);
}

}  // namespace weft

#include "registry/members.h"

#include "base/log.h"
#include "os/sys.h"
#include "registry/registry_records.h"

namespace weft {

void MemberList::reset(const std::vector<std::pair<std::uint64_t, Member>>& members) {
  std::lock_guard lock(mutex_);
  known_.clear();
  for (const auto& [revision, member] : members) known_[member.node] = {revision, member};
}

bool MemberList::set(std::uint64_t revision, const std::string& node, std::optional<Member> member) {
  std::lock_guard lock(mutex_);
  auto at = known_.find(node);
  if (at != known_.end() && at->second.revision >= revision) return false;
  known_[node] = {revision, std::move(member)};
  return true;
}

bool MemberList::put(std::uint64_t revision, Member member) {
  std::string node = member.node;
  return set(revision, node, std::move(member));
}

bool MemberList::remove(std::uint64_t revision, const std::string& node) {
  return set(revision, node, std::nullopt);
}

std::vector<Member> MemberList::list() const {
  std::lock_guard lock(mutex_);
  std::vector<Member> out;
  for (const auto& [node, known] : known_)
    if (known.member) out.push_back(*known.member);
  return out;
}

Membership::Membership(etcd::Client& client, const RegistryKeys& keys, std::chrono::seconds lease,
                       std::function<void(bool)> asked)
    : client_(client), keys_(keys), ttl_(lease), asked_(std::move(asked)) {}

void Membership::end() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Membership::begin(Member self) {
  std::lock_guard lock(mutex_);
  if (ending_) return;
  if (thread_.joinable()) {
    hurried_ = true;
    return wake_.notify_all();
  }
  self_ = std::move(self);
  self_.since_ns = now_ns();
  thread_ = std::thread([this] { run(); });
}

// Renews the lease. If the lease has expired, its key is gone too, so takes a new lease and puts the key again.
Status Membership::renew() {
  if (lease_ != 0) {
    WEFT_TRY(etcd::LeaseAnswer answer, client_.keep_alive(lease_));
    if (answer.ttl_s != 0) return {};
    lease_ = 0;
  }
  WEFT_TRY(etcd::LeaseAnswer granted, client_.grant_lease(static_cast<std::uint64_t>(ttl_.count())));
  std::string key = keys_.member(self_.node);
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, seal(self_, keys_.bound(key)), granted.id});
  WEFT_CHECK(client_.txn(txn));
  lease_ = granted.id;
  return {};
}

bool Membership::sleep() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::milliseconds(ttl_) / 4, [this] { return ending_ || hurried_; });
  hurried_ = false;
  return !ending_;
}

void Membership::run() {
  bool failing = false;
  do {
    Status renewed = renew();
    if (!renewed.ok() && !failing) log_warning("membership: {}", renewed.error().message);
    failing = !renewed.ok();
    asked_(!failing || (renewed.error().code != Errc::unreachable && renewed.error().code != Errc::timed_out));
  } while (sleep());
  if (lease_ != 0) static_cast<void>(client_.revoke_lease(lease_));
}

}  // namespace weft

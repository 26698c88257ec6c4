#include "daemon/key_change.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"

namespace weft {

Result<RotateKeyReport> KeyChange::run() {
  WEFT_TRY(KeyState now, peers_.exchange().key_state());
  if (const std::string other = now.changing(); !other.empty() && other != now.made) {
    log_warning("this node has not made the key {} of an unfinished change: it ends that change, and makes another key",
                other);
    WEFT_TRY(const RotateKeyReport ended, change(std::move(now)));
    if (!ended.forgotten) return ended;
    report_ = {};
    WEFT_TRY(now, peers_.exchange().key_state());
  }
  return change(std::move(now));
}

Result<RotateKeyReport> KeyChange::change(KeyState now) {
  if (now.previous.empty()) {
    WEFT_TRY(const std::string key, accept_everywhere(now));
    WEFT_CHECK(peers_.follow({KeyStep::use, key}));
    WEFT_TRY(now, peers_.exchange().key_state());
  }
  report_.key = now.proving;
  report_.before = now.previous;
  WEFT_CHECK(use_everywhere(now.proving));
  find_away();
  report_.forgotten = report_.away.empty() || finish_;
  if (report_.forgotten) WEFT_CHECK(forget_everywhere(now.previous));
  return report_;
}

// Returns the new key. If a node does not take a key that this call has made, no node keeps it.
Result<std::string> KeyChange::accept_everywhere(const KeyState& now) {
  WEFT_TRY(const KeyOrder accept, peers_.exchange().key_order(now.next));
  if (now.next.empty()) WEFT_CHECK(peers_.follow(accept));
  std::vector<Member> accepting;
  for (const Member& member : others()) {
    const Status done = order(member, accept);
    if (done.ok()) accepting.push_back(member);
    if (done.ok() || (finish_ && done.error().code != Errc::exists)) continue;
    if (now.next.empty()) take_back(accepting, accept.name);
    return Error{done.error().code, fmt::format("{}; the cluster goes on with the old key", done.error().message)};
  }
  return accept.name;
}

void KeyChange::take_back(const std::vector<Member>& members, const std::string& key) {
  for (const Member& member : members) static_cast<void>(order(member, {KeyStep::forget, key}));
  if (const Status own = peers_.follow({KeyStep::forget, key}); !own.ok())
    log_warning("the unused key {} of the cluster: {}", key, own.error().message);
}

// A node that came back may lack the key.
Status KeyChange::use_everywhere(const std::string& key) {
  WEFT_TRY(const KeyOrder accept, peers_.exchange().key_order(key));
  for (const Member& member : others()) {
    Status done = order(member, accept);
    if (done.ok()) done = order(member, {KeyStep::use, key});
    if (done.ok())
      report_.nodes.push_back(member.name);
    else if (finish_)
      report_.away.push_back(member.name);
    else
      return done;
  }
  return {};
}

Status KeyChange::forget_everywhere(const std::string& key) {
  peers_.wait_for_proofs(key);
  for (const Member& member : others()) {
    const Status done = order(member, {KeyStep::forget, key});
    if (!done.ok() && !finish_) return done;
  }
  return peers_.follow({KeyStep::forget, key});
}

// Finds the nodes that the cluster knows and that are no members now.
void KeyChange::find_away() {
  for (const KnownNode& node : registry_.nodes())
    if (!node.present) report_.away.push_back(name_of_node(registry_, node.node));
}

Status KeyChange::order(const Member& member, const KeyOrder& order) {
  const Status done = peers_.order(member.node, order);
  return done.ok() ? Status{} : Error{done.error().code, fmt::format("{}: {}", member.name, done.error().message)};
}

// Nodes without an address make no calls.
std::vector<Member> KeyChange::others() const {
  std::vector<Member> members = registry_.members();
  std::erase_if(members, [&](const Member& member) { return peers_.is_self(member) || member.address.empty(); });
  return members;
}

namespace {

Result<RotateKeyReport> rotate_key(control::Call& call, const RotateKeyRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_owner(call.peer(), "change the cluster's key"));
  if (parts.bytes.peers == nullptr)
    return Error{Errc::unsupported, "this node makes no calls to other nodes, so it cannot change their key"};
  WEFT_TRY(RotateKeyReport report, KeyChange(parts.registry, *parts.bytes.peers, request.finish).run());
  log_info("the cluster's key is {} now, by user {}", report.key, call.peer().uid);
  return report;
}

}  // namespace

void serve_keys(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "rotate_key", rotate_key);
}

}  // namespace weft

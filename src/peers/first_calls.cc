#include "peers/first_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "peers/address.h"
#include "peers/messages.h"

namespace weft {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);

}  // namespace

FirstCalls::FirstCalls(Exchange& exchange, std::string self, Members members)
    : exchange_(exchange), self_(std::move(self)), members_(std::move(members)) {
  worker_.start([this] { return round(); });
}

Worker::Pause FirstCalls::round() {
  std::map<std::string, Called> before = std::exchange(called_, {});
  auto next = Clock::time_point::max();
  for (Member& member : members_()) {
    if (member.node == self_) continue;
    const auto known = before.find(member.node);
    const bool same = known != before.end() && known->second.member == member;
    Called& called = called_[member.node];
    called = same ? std::move(known->second) : Called{.member = std::move(member)};
    if (!called.over && called.next <= Clock::now() && !worker_.ending()) call(called);
    if (!called.over) next = std::min(next, called.next);
  }
  return next == Clock::time_point::max() ? Worker::kUntilWoken : std::max(next - Clock::now(), Clock::duration{});
}

// Asks for the holders of no manifest: the answer is short, and the question changes nothing. After a refusal there are
// no further calls: a node answers few callers with another key at a time, and a new key takes a restart.
void FirstCalls::call(Called& called) {
  const auto address = parse_endpoint(called.member.address);
  called.over = !address;
  if (called.over) return;
  const PeerAddress peer{called.member.node, *address, called.member.provider};
  const auto answer = exchange_.call(peer, encode_request(AskHolders{}), deadline_in(kPatience));
  called.over = answer.ok() || answer.error().code == Errc::permission;
  if (!called.over) called.next = Clock::now() + called.pause.failed();
}

}  // namespace weft

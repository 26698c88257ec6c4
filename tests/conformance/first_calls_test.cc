// The first calls to the members of a cluster, over exchanges of twins.
#include "peers/first_calls.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "exchange_support.h"
#include "peers/address.h"

namespace weft::conformance {
namespace {

// Counts requests. Fails the first `fails` of them.
class CountingServer final : public PeerServer {
 public:
  std::atomic<int> requests = 0, fails = 0;
  Result<PeerReply> answer(std::string_view /*node*/, std::span<const std::byte> /*request*/) override {
    if (++requests <= fails) return Error{Errc::unreachable, "not ready"};
    return PeerReply{};
  }
};

Member member_of(const Exchange& exchange, const std::string& node, std::uint64_t since_ns = 1) {
  return {node, node, endpoint_text(exchange.endpoints().front().address), "", since_ns};
}

// A node whose only other member may change. Its own record is always among the members.
struct World {
  std::unique_ptr<Exchange> open(const KeyFile& with, const std::string& node, PeerServer& serves) const {
    return open_node(*world, with, node, &serves);
  }
  void set(Member member) {
    {
      const MutexLock lock(mutex);
      members = {member_of(*self, "self"), std::move(member)};
    }
    calls.wake();
  }
  std::vector<Member> list() {
    ++lists;
    const MutexLock lock(mutex);
    return members;
  }
  // Waits for the end of a round that begins after this call. The next round begins only then.
  void settle() {
    for (int i = 0; i < 2; ++i) {
      const int before = lists;
      calls.wake();
      REQUIRE(comes_true([&] { return lists > before; }));
    }
  }

  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  const KeyFile key, other_key{'o'};
  CountingServer self_server, server;
  std::unique_ptr<Exchange> self = open(key, "self", self_server);
  std::atomic<int> lists = 0;
  Mutex mutex;
  std::vector<Member> members WEFT_GUARDED_BY(mutex);
  FirstCalls calls{*self, "self", [this] { return list(); }};
};

TEST_CASE("each member is called once, and again after its restart") {
  World it;
  const auto other = it.open(it.key, "other", it.server);
  it.set(member_of(*other, "other"));
  it.settle();
  it.settle();
  CHECK(it.server.requests == 1);
  it.set(member_of(*other, "other", 2));
  it.settle();
  CHECK(it.server.requests == 2);
  CHECK(it.self->figures().calls == 2);  // none to itself
  CHECK(it.self->figures().other_key.empty());
}

TEST_CASE("a member that does not answer is called again") {
  World it;
  it.server.fails = 1;
  const auto other = it.open(it.key, "other", it.server);
  it.set(member_of(*other, "other"));
  CHECK(comes_true([&] { return it.server.requests == 2; }));
}

TEST_CASE("a member with another key is listed at once on both sides, and not called again") {
  World it;
  const auto other = it.open(it.other_key, "other", it.server);
  FirstCalls others(*other, "other", [&] { return std::vector{member_of(*it.self, "self")}; });
  it.set(member_of(*other, "other"));
  CHECK(comes_true([&] { return it.self->figures().other_key.contains("other"); }));
  CHECK(comes_true([&] { return other->figures().other_key.contains("self"); }));
  it.settle();
  CHECK(it.self->figures().calls == 1);
  CHECK(it.server.requests + it.self_server.requests == 0);
}

TEST_CASE("a member that comes back with the cluster's key is no longer listed") {
  World it;
  auto other = it.open(it.other_key, "other", it.server);
  it.set(member_of(*other, "other"));
  REQUIRE(comes_true([&] { return it.self->figures().other_key.contains("other"); }));
  other.reset();
  other = it.open(it.key, "other", it.server);
  it.set(member_of(*other, "other", 2));
  CHECK(comes_true([&] { return it.self->figures().other_key.empty(); }));
}

}  // namespace
}  // namespace weft::conformance

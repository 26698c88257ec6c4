#include "peers/swarm/peer_swarms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "fakes/twin_source.h"
#include "peers/messages.h"
#include "peers/offered_unit.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class DirectReply final : public ReplyTaker {
 public:
  explicit DirectReply(CallDone done) : done_(std::move(done)) {}
  void give(Result<PeerReply> reply) override {
    if (!reply.ok()) return done_(reply.error());
    done_(std::unique_ptr<Answer>(std::make_unique<TestAnswer>(std::move(reply).value())));
  }
  bool wanted() const override { return true; }

 private:
  const CallDone done_;
};

using Network = std::map<std::string, PeerSwarms*>;

// Calls the other nodes directly, on the thread of the caller.
class DirectCalls final : public SwarmCalls {
 public:
  DirectCalls(const Network& network, std::string self) : network_(network), self_(std::move(self)) {}
  void begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds /*patience*/,
             CallDone done) override {
    const auto found = network_.find(node);
    if (found == network_.end()) return done(Error{Errc::unreachable, "no such node"});
    PendingReply reply(std::make_shared<DirectReply>(std::move(done)));
    auto asked = must(decode_request(request));
    if (auto* join = std::get_if<Join>(&asked)) found->second->receive(self_, std::move(*join), std::move(reply));
    if (auto* want = std::get_if<Want>(&asked)) found->second->receive(self_, std::move(*want), std::move(reply));
  }

 private:
  const Network& network_;
  const std::string self_;
};

// A node with its threads, and a fetcher that reads each offered unit at once.
struct Node {
  Node(TestVersion& of, Network& network, const std::string& name, std::shared_ptr<BlobSource> origin = nullptr)
      : version(of),
        bytes(of),
        swarms({of.store(), std::make_unique<DirectCalls>(network, name), name, [] { return ""; },
                [](const Digest&) { return std::vector<std::string>{"a"}; },
                [](const Digest&) { return std::vector<std::string>{"s"}; },
                [has_origin = origin != nullptr](const Digest&) { return has_origin ? "" : "s"; }, origin}) {
    network.emplace(name, &swarms);
    swarms.on_change([this] { changed(); });
  }
  ~Node() { swarms.on_change({}); }

  void changed() {
    const std::lock_guard lock(mutex);
    offered = true;
    condition.notify_all();
  }
  // Reads units until all have come. False: none came for a long time.
  bool fetch_all() {
    must(swarms.want(version.manifest(), version.runs(), false));
    while (bytes.count() < version.units()->count()) {
      {
        std::unique_lock lock(mutex);
        if (!condition.wait_for(lock, seconds(60), [&] { return offered; })) return false;
        offered = false;
      }
      while (const auto offer = std::dynamic_pointer_cast<PeerOffer>(swarms.take())) read(*offer);
    }
    return true;
  }
  void read(PeerOffer& offer) {
    if (offer.by_name()) {
      ++from_origin;
    } else {
      const OfferPlace place = offer.place();
      const auto read = dynamic_cast<TestAnswer&>(*place.answer).read_all(place.head);
      if (!std::ranges::equal(read, version.bytes(offer.unit()))) return;
    }
    bytes.add(offer.unit());
    swarms.arrived(offer.manifest(), offer.runs());
    offer.arrived();
  }

  TestVersion& version;
  UnitBytes bytes;
  std::mutex mutex;
  std::condition_variable condition;
  bool offered = false;
  std::size_t from_origin = 0;  // units
  PeerSwarms swarms;
};

}  // namespace

TEST_CASE("a node joins at itself, and fetches a version from its source") {
  TestVersion version(40);
  Network network;
  Node s(version, network, "s");
  Node a(version, network, "a");
  s.bytes.add_all();
  s.swarms.begin(s.bytes);
  a.swarms.begin(a.bytes);
  CHECK(a.fetch_all());
  REQUIRE(a.swarms.introduced().size() == 1);
  CHECK(a.swarms.introduced().front().members == 1);
  REQUIRE(a.swarms.fetched().size() == 1);
  CHECK(a.swarms.fetched().front().received.from_source == 40);
  CHECK(a.swarms.fetched().front().done);
  REQUIRE(s.swarms.sent().size() == 1);
  CHECK(s.swarms.sent().front().is_source);
  CHECK(s.swarms.sent().front().here == 40);
  CHECK(a.swarms.figures().received.from_source == 40);
  CHECK(a.swarms.figures().swarms == 1);
  CHECK(a.swarms.figures().hungry == 0);
  CHECK(a.swarms.figures().introduced == 1);
  CHECK(a.swarms.figures().partners == 1);
  CHECK(a.swarms.figures().held == 40);
  CHECK(a.swarms.figures().named == 0);
  CHECK(s.swarms.figures().swarms == 1);
  CHECK(s.swarms.figures().introduced == 0);
  CHECK(s.swarms.figures().held == 40);
  a.swarms.end();
  CHECK(a.swarms.figures().received.from_source == 40);
  CHECK(a.swarms.figures().swarms == 0);
  CHECK(a.swarms.figures().introduced == 0);
  CHECK(a.swarms.figures().partners == 0);
  CHECK(a.swarms.figures().held == 0);
  s.swarms.end();
  CHECK(a.swarms.want(version.manifest(), version.runs(), false).error().code == Errc::cancelled);
}

TEST_CASE("a node is its own clerk of the origin") {
  TestVersion version(40);
  Network network;
  Node a(version, network, "a", std::make_shared<TwinSource>());
  a.swarms.begin(a.bytes);
  CHECK(a.fetch_all());
  CHECK(a.from_origin == 40);
  CHECK(a.swarms.figures().received.from_origin == 40);
  REQUIRE(a.swarms.named().size() == 1);
  CHECK(a.swarms.named().front().units == 40);
  CHECK(a.swarms.named().front().is_source);
  CHECK(a.swarms.sent().empty());
  for (const auto end = Clock::now() + seconds(60); a.swarms.figures().named < 40 && Clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it tells itself of each read
  CHECK(a.swarms.figures().named == 40);
  CHECK(a.swarms.figures().sent == 0);
  a.swarms.end();
  CHECK(a.swarms.figures().named == 40);
}

TEST_CASE("a node without an origin is no clerk") {
  TestVersion version(4);
  Network network;
  Node s(version, network, "s");
  s.swarms.begin(s.bytes);
  const auto reply = std::make_shared<KeptReply>();
  Want want{version.manifest(), UnitSet(4).encode(), {}, false, false, Traffic::ahead, true};
  s.swarms.receive("a", std::move(want), PendingReply(reply));
  REQUIRE(reply->reply);
  CHECK(reply->reply->error().code == Errc::unsupported);
  CHECK(s.swarms.named().empty());
  s.swarms.end();
}

TEST_CASE("swarms end while wants and joins wait") {
  TestVersion version(4);
  Network network;
  Node s(version, network, "s");  // it has no unit
  Node a(version, network, "a");
  s.swarms.begin(s.bytes);
  a.swarms.begin(a.bytes);
  must(a.swarms.want(version.manifest(), version.runs(), false));
  s.swarms.receive("a", Join{version.manifest(), "", Join::State::fetches},
                   PendingReply(std::make_shared<KeptReply>()));
  s.swarms.end();
  a.swarms.end();
  CHECK(!a.swarms.take());
  CHECK(a.swarms.fetched().empty());
}

}  // namespace weft::testing

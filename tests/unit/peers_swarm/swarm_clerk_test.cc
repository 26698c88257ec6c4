// A sender as the clerk of the origin: it offers units by name.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "fakes/manual_time.h"
#include "peers/swarm/swarm_sender.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using Unit = std::optional<std::uint32_t>;
using Asked = std::shared_ptr<KeptReply>;
using Numbers = std::vector<std::uint32_t>;

// A clerk, and its clock.
struct Naming {
  explicit Naming(std::uint32_t units) : version(units) { clerk->begin(std::make_unique<OriginStock>()); }
  // Sends a want of a node that has no unit.
  Asked want(std::string_view node, bool hungry = false) {
    Want want;
    want.manifest = version.manifest();
    want.has = UnitSet(version.units()->count()).encode();
    want.hungry = hungry;
    want.of_clerk = true;
    auto reply = std::make_shared<KeptReply>();
    clerk->receive(node, std::move(want), PendingReply(reply));
    clerk->run();
    return reply;
  }
  void report(std::string_view node, const Numbers& read, const Numbers& unread,
              Join::State state = Join::State::lives) {
    clerk->reported(node, {version.manifest(), "", state, read, unread});
    clerk->run();
  }
  void pass(milliseconds duration) {
    time.pass(duration);
    clerk->run();
  }
  SentVersion status() const {
    const auto versions = clerk->versions();
    REQUIRE(versions.size() == 1);
    return versions.front();
  }

  TestVersion version;
  ManualTime time;
  std::shared_ptr<SwarmSender> clerk = std::make_shared<SwarmSender>(
      SwarmSender::Parts{[this](const Digest& manifest) { return version.find(manifest); },
                         [](const Digest& /*manifest*/, const std::string& /*node*/) {}, [] {}, time});
};

// The unit of an answer that has no bytes.
Unit unit_of(const Asked& asked) {
  REQUIRE(asked->reply);
  REQUIRE(asked->reply->ok());
  CHECK((*asked->reply)->windows.empty());
  CHECK((*asked->reply)->head.size() == kOfferBytes);
  return must(decode_offer((*asked->reply)->head)).offer.unit;
}

}  // namespace

TEST_CASE("a clerk names each unit once, in the order of the version") {
  Naming node(3);
  CHECK(unit_of(node.want("a")) == Unit(0));
  CHECK(unit_of(node.want("b")) == Unit(1));
  CHECK(unit_of(node.want("a")) == Unit(2));
  CHECK(!node.want("c")->reply);
  CHECK(node.status().is_source);
  CHECK(node.status().here == 3);
  CHECK(node.status().uploads == 3);
  node.report("a", {0, 2}, {});
  node.report("b", {1}, {});
  CHECK(node.status().uploads == 0);
  CHECK(node.status().sent == 3);
}

TEST_CASE("a unit whose read failed is named again, and a report of another node changes nothing") {
  Naming node(1);
  CHECK(unit_of(node.want("a")) == Unit(0));
  const Asked b = node.want("b");
  node.report("b", {0}, {});
  node.report("c", {}, {0});
  node.report("a", {}, {7});
  CHECK(node.status().uploads == 1);
  CHECK(!b->reply);
  node.report("a", {}, {0});
  CHECK(unit_of(b) == Unit(0));
  CHECK(node.status().sent == 0);
}

TEST_CASE("a unit that nobody reports counts as read after a while, and a hungry node gets its name again") {
  Naming node(1);
  CHECK(unit_of(node.want("a")) == Unit(0));
  const Asked b = node.want("b");
  node.pass(SwarmSender::kNamedMax - milliseconds(1));
  CHECK(node.status().uploads == 1);
  node.pass(milliseconds(1));
  CHECK(node.status().uploads == 0);
  CHECK(!b->reply);
  node.report("a", {}, {0});  // too late
  CHECK(!b->reply);
  node.want("b", true);
  CHECK(unit_of(b) == Unit(0));
}

TEST_CASE("the units of a node that leaves its swarm are named again") {
  Naming node(1);
  CHECK(unit_of(node.want("a")) == Unit(0));
  const Asked waits = node.want("a");
  const Asked b = node.want("b");
  node.report("a", {}, {}, Join::State::leaves);
  CHECK(unit_of(b) == Unit(0));
  REQUIRE(waits->reply);
  CHECK(waits->reply->error().code == Errc::unreachable);
}

TEST_CASE("a clerk names kNamedAtOnce units at once, and the next one when a read has ended") {
  Naming node(64);
  std::vector<Asked> asked;
  for (std::size_t i = 0; i < SwarmSender::kNamedAtOnce + 2; ++i) asked.push_back(node.want(fmt::format("n{}", i % 8)));
  for (std::size_t i = 0; i < SwarmSender::kNamedAtOnce; ++i) CHECK(unit_of(asked[i]) == Unit(i));
  CHECK(!asked[SwarmSender::kNamedAtOnce]->reply);
  node.report("n1", {1}, {});
  CHECK(unit_of(asked[SwarmSender::kNamedAtOnce]) == Unit(SwarmSender::kNamedAtOnce));
  CHECK(!asked.back()->reply);
}

}  // namespace weft::testing

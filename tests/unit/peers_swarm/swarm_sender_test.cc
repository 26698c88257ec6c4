#include "peers/swarm/swarm_sender.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "fakes/manual_time.h"
#include "log_file.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Unit = std::optional<std::uint32_t>;
using Asked = std::shared_ptr<KeptReply>;

// A sender, and its clock.
struct Sending {
  explicit Sending(std::uint32_t units, std::size_t unit_bytes = TestVersion::kUnitBytes)
      : version(units, unit_bytes), bytes(version), has(units) {
    sender->begin(bytes);
  }
  // Sends a want of a node that has the units of `has`.
  Asked want(std::string_view node, bool of_source = false, bool hungry = false) {
    Want want;
    want.manifest = version.manifest();
    want.has = has.encode();
    want.of_source = of_source;
    want.hungry = hungry;
    return want_of(node, std::move(want));
  }
  Asked want_of(std::string_view node, Want want) {
    auto reply = std::make_shared<KeptReply>();
    sender->receive(node, std::move(want), PendingReply(reply));
    sender->run();
    return reply;
  }
  void come(std::uint32_t unit) {
    bytes.add(unit);
    const ChunkRun run = version.run(unit);
    sender->arrived(version.manifest(), std::span(&run, 1));
    sender->run();
  }
  void pass(std::chrono::milliseconds duration) {
    time.pass(duration);
    sender->run();
  }
  SentVersion status() const {
    const auto versions = sender->versions();
    REQUIRE(versions.size() == 1);
    return versions.front();
  }

  TestVersion version;
  UnitBytes bytes;
  UnitSet has;
  ManualTime time;
  std::vector<std::pair<Digest, std::string>> met;
  int woken = 0;
  std::vector<Digest> lost;
  std::shared_ptr<SwarmSender> sender = std::make_shared<SwarmSender>(
      SwarmSender::Parts{[this](const Digest& manifest) { return version.find(manifest); },
                         [this](const Digest& manifest, const std::string& node) { met.emplace_back(manifest, node); },
                         [this] { ++woken; }, time, [this](const Digest& manifest) { lost.push_back(manifest); }});
};

// The unit of an offer; the reply keeps its bytes.
Unit unit_of(const Asked& asked) {
  REQUIRE(asked->reply);
  REQUIRE(asked->reply->ok());
  return must(decode_offer((*asked->reply)->head)).offer.unit;
}

Errc error_of(const Asked& asked) {
  REQUIRE(asked->reply);
  REQUIRE(!asked->reply->ok());
  return asked->reply->error().code;
}

// Ends the upload of an offer, as the reader of its windows does.
void end(const Asked& asked, std::uint64_t read_bytes) {
  REQUIRE(asked->reply);
  REQUIRE(asked->reply->ok());
  REQUIRE((*asked->reply)->ended);
  (*asked->reply)->ended(read_bytes);
}

// A sender of one version too many. It has the first unit of each.
struct ManySent {
  ManySent() {
    for (std::uint32_t i = 0; i <= SwarmSender::kVersionsMax; ++i)
      versions.push_back(std::make_unique<TestVersion>(i + 2, 100));
    bytes = std::make_unique<UnitBytes>(*versions.front());
    bytes->add(0);
    sender->begin(std::make_unique<LocalStock>(*bytes));
  }
  void want(const TestVersion& version, bool has_all) {
    const std::uint32_t units = version.units()->count();
    Want want;
    want.manifest = version.manifest();
    UnitSet has(units);  // all that the sender has, or nothing
    if (has_all) has.add(0);
    want.has = has.encode();
    asked.push_back(std::make_shared<KeptReply>());
    sender->receive("a", std::move(want), PendingReply(asked.back()));
    sender->run();
  }

  std::vector<std::unique_ptr<TestVersion>> versions;
  std::unique_ptr<UnitBytes> bytes;
  std::vector<Asked> asked;
  std::size_t looked = 0;
  ManualTime time;
  std::shared_ptr<SwarmSender> sender = std::make_shared<SwarmSender>(SwarmSender::Parts{
      [this](const Digest& manifest) {
        ++looked;
        const auto found = std::ranges::find(versions, manifest, [](const auto& one) { return one->manifest(); });
        return (*found)->find(manifest);
      },
      [](const Digest& /*manifest*/, const std::string& /*node*/) {}, [] {}, time});
};

}  // namespace

TEST_CASE("a want is answered with an offer, and with windows on the bytes of its unit") {
  Sending node(4);
  node.bytes.add(2);
  const Asked asked = node.want("a");
  CHECK(unit_of(asked) == Unit(2));
  TestAnswer answer(*std::move(*asked->reply));
  REQUIRE(answer.windows() == 1);
  CHECK(std::ranges::equal(answer.read_all({}), node.version.bytes(2)));
  CHECK(node.met == std::vector{std::pair(node.version.manifest(), std::string("a"))});
  CHECK(node.status().here == 1);
  CHECK(node.status().uploads == 1);
}

TEST_CASE("the bytes of a short unit follow the offer in the head") {
  Sending node(2, 100);
  node.bytes.add(1);
  const Asked asked = node.want("a");
  REQUIRE(unit_of(asked) == Unit(1));
  CHECK((*asked->reply)->windows.empty());
  CHECK(std::ranges::equal(must(decode_offer((*asked->reply)->head)).bytes, node.version.bytes(1)));
  end(asked, 0);  // as the exchange does once it was sent
  CHECK(node.status().sent == 1);
  CHECK(node.status().uploads == 0);
}

TEST_CASE("the offer of a name has a token in place of the bytes, and its upload ends as any other") {
  for (const std::size_t unit_bytes : {TestVersion::kUnitBytes, std::size_t{100}})
    for (const bool is_read : {true, false}) {
      CAPTURE(unit_bytes);
      CAPTURE(is_read);
      Sending node(1, unit_bytes);
      node.bytes.add_all();
      Want want;
      want.manifest = node.version.manifest();
      want.has = node.has.encode();
      want.of_source = want.names = true;
      const Asked a = node.want_of("a", want);
      CHECK(unit_of(a) == Unit(0));
      CHECK((*a->reply)->head.size() == kOfferBytes);
      REQUIRE((*a->reply)->windows.size() == 1);
      CHECK((*a->reply)->windows.front()->bytes().size() == kTokenBytes);
      const Asked b = node.want_of("b", std::move(want));
      CHECK(!b->reply);
      CHECK(node.status().uploads == 1);
      end(a, is_read ? kTokenBytes : 0);
      node.sender->run();
      CHECK(b->reply.has_value() == !is_read);
      CHECK(node.status().sent == (is_read ? 1U : 0U));
    }
}

TEST_CASE("a unit whose bytes are gone is not named") {
  Sending node(2);
  node.bytes.add(0);
  node.has.add(0);
  CHECK(!node.want("a")->reply);  // opens the session: the node has the unit 0
  node.bytes.remove(0);
  Want want;
  want.manifest = node.version.manifest();
  want.has = UnitSet(2).encode();
  want.names = true;
  CHECK(unit_of(node.want_of("b", std::move(want))) == Unit());
  CHECK(node.status().here == 0);
}

TEST_CASE("a want waits until a unit comes that the asker lacks") {
  Sending node(4);
  node.has.add(0);
  const Asked asked = node.want("a");
  CHECK(!asked->reply);
  node.come(0);
  CHECK(!asked->reply);
  node.come(3);
  CHECK(unit_of(asked) == Unit(3));
  CHECK(node.status().here == 2);
}

TEST_CASE("a want is answered without a unit after kWantWaitMax") {
  Sending node(4);
  const Asked asked = node.want("a");
  CHECK(node.sender->run() == node.time.now() + kWantWaitMax);
  node.pass(kWantWaitMax - milliseconds(1));
  CHECK(!asked->reply);
  node.pass(milliseconds(1));
  CHECK(unit_of(asked) == Unit());
  CHECK(node.status().waiting == 0);
}

TEST_CASE("a source sends each unit once, and again if the receiver declined it") {
  Sending node(1);
  node.bytes.add_all();
  const Asked a = node.want("a", true);
  CHECK(unit_of(a) == Unit(0));
  CHECK(node.status().is_source);
  const Asked b = node.want("b", true);
  CHECK(!b->reply);
  end(a, 0);
  node.sender->run();
  CHECK(unit_of(b) == Unit(0));
  end(b, TestVersion::kUnitBytes);
  const Asked c = node.want("c", true);
  CHECK(!c->reply);
  CHECK(node.status().sent == 1);
}

TEST_CASE("a unit that was read in part was not sent") {
  Sending node(1);
  node.bytes.add_all();
  const Asked a = node.want("a", true);
  const Asked b = node.want("b", true);
  end(a, TestVersion::kUnitBytes - 1);
  node.sender->run();
  CHECK(unit_of(b) == Unit(0));
  CHECK(node.status().sent == 0);
}

TEST_CASE("a source sends a unit again to a hungry receiver, after a while, and the log tells of it") {
  const LogFile log("info,peers=debug");
  Sending node(1);
  node.bytes.add_all();
  const Asked a = node.want("a", true);
  end(a, TestVersion::kUnitBytes);
  const Asked b = node.want("b", true, true);
  CHECK(!b->reply);
  CHECK(node.sender->run() == node.time.now() + Uploads::kResendAfter);
  CHECK(!log.has("again"));
  node.pass(Uploads::kResendAfter);
  CHECK(unit_of(b) == Unit(0));
  CHECK(log.has(fmt::format("debug: peers: swarm of manifest {}: unit 0 is sent again, to b\n",
                            to_hex(node.version.manifest()))));
  CHECK(log.count("again") == 1);
}

TEST_CASE("a node that lacks a unit says so to whom asks it as the source, and is a mere partner") {
  Sending node(2);
  node.bytes.add(0);
  CHECK(error_of(node.want("a", true)) == Errc::absent);
  CHECK(!node.status().is_source);
  for (const char* asker : {"a", "b"}) CHECK(unit_of(node.want(asker)) == Unit(0));
}

TEST_CASE("a node that was asked as the source and lacks units looks for them again, at most once in kSurveyAgain") {
  Sending node(2);
  node.bytes.add(0);
  CHECK(error_of(node.want("a", true)) == Errc::absent);
  node.bytes.add(1);  // published: arrived() does not report it
  CHECK(error_of(node.want("a", true)) == Errc::absent);
  CHECK(error_of(node.want("a", true)) == Errc::absent);
  node.time.pass(SwarmSender::kSurveyAgain);
  CHECK(error_of(node.want("a", true)) == Errc::absent);
  node.sender->run();
  CHECK(unit_of(node.want("a", true)) == Unit(0));
  CHECK(node.status().is_source);
}

TEST_CASE("a sender tells once that units of a version are gone") {
  Sending node(2);
  node.bytes.add(0);
  node.has.add(0);
  CHECK(!node.want("a")->reply);  // opens the session
  node.sender->survey_again();
  node.sender->run();
  CHECK(node.lost.empty());
  node.bytes.remove(0);
  for (int i = 0; i < 2; ++i) {
    node.sender->survey_again();
    node.sender->run();
    CHECK(node.lost == std::vector{node.version.manifest()});
  }
}

TEST_CASE("a unit whose bytes are gone is not offered again") {
  Sending node(2);
  node.bytes.add(0);
  node.has.add(0);
  const Asked first = node.want("a");  // opens the session: the node has the unit 0
  CHECK(!first->reply);
  node.bytes.remove(0);
  node.has.remove(0);
  CHECK(unit_of(node.want("b")) == Unit());
  CHECK(node.status().here == 0);
  node.bytes.add(0);
  const Asked last = node.want("b");
  CHECK(!last->reply);
  node.come(0);
  CHECK(unit_of(last) == Unit(0));
}

TEST_CASE("after an eviction the sender looks for its units again") {
  Sending node(3);
  node.bytes.add(0);
  node.bytes.add(1);
  node.has.add(0);
  node.has.add(1);
  node.want("a");
  CHECK(node.status().here == 2);
  node.bytes.remove(0);
  node.bytes.add(2);
  node.sender->survey_again();
  node.sender->run();
  CHECK(node.status().here == 2);
  node.has = UnitSet(3);
  node.has.add(1);
  node.has.add(2);
  const Asked asked = node.want("b");
  CHECK(!asked->reply);
  node.come(0);
  CHECK(unit_of(asked) == Unit(0));
}

TEST_CASE("a node uploads kUploadsAtOnce units, and counts an upload of kUploadMax as failed") {
  Sending node(kUploadsAtOnce + 1);
  node.bytes.add_all();
  std::vector<Asked> asked;
  for (std::size_t i = 0; i < kUploadsAtOnce; ++i) {
    asked.push_back(node.want("a"));
    REQUIRE(unit_of(asked.back()));
  }
  CHECK(!node.want("b")->reply);
  CHECK(node.status().uploads == kUploadsAtOnce);
  node.pass(SwarmSender::kUploadMax - seconds(1));
  CHECK(unit_of(node.want("b")));  // in the place of an upload to `a`
  CHECK(node.status().uploads == kUploadsAtOnce + 1);
  node.pass(seconds(1));
  CHECK(node.status().uploads == 1);
  end(asked.front(), TestVersion::kUnitBytes);  // too late
  CHECK(node.status().sent == 0);
}

TEST_CASE("wants for many unknown versions delay the known ones by one look at a time") {
  Sending node(4);
  node.has.add(0);
  node.want("a");
  node.bytes.add(1);
  const int woken = node.woken;
  std::vector<Asked> unknown;
  for (std::uint64_t i = 0; i < 10; ++i) {
    Want want;
    want.manifest = blob_named(i, 0).root;
    want.has = node.has.encode();
    unknown.push_back(std::make_shared<KeptReply>());
    node.sender->receive("mallory", std::move(want), PendingReply(unknown.back()));
  }
  const ChunkRun run = node.version.run(1);
  node.sender->arrived(node.version.manifest(), std::span(&run, 1));
  CHECK(unit_of(node.want("b")) == Unit(1));
  const auto refused = [&] {
    return std::ranges::count_if(unknown, [](const Asked& one) { return one->reply.has_value(); });
  };
  CHECK(refused() == 1);
  CHECK(node.woken > woken + 12);  // it asks for another run
  for (int i = 0; i < 9; ++i) node.sender->run();
  CHECK(refused() == 10);
  for (const Asked& one : unknown) CHECK(error_of(one) == Errc::not_found);
}

TEST_CASE("of 10,000 wants of one node kWantsOpen wait, and those of others are answered") {
  Sending node(4);
  node.has.add(1);
  std::size_t refused = 0;
  std::vector<Asked> asked;
  for (int i = 0; i < 10'000; ++i) {
    asked.push_back(node.want("a"));
    if (asked.back()->reply && unit_of(asked.back()) == Unit()) ++refused;
  }
  CHECK(refused == 10'000 - kWantsOpen);
  CHECK(node.status().waiting == kWantsOpen);
  const Asked other = node.want("b");
  node.come(0);
  CHECK(unit_of(other) == Unit(0));
}

TEST_CASE("a node that does not close its units holds no more than one of them in the end") {
  Sending node(3 * kUploadsAtOnce);
  node.bytes.add_all();
  std::vector<Asked> held;
  for (std::size_t i = 0; i < 2 * kUploadsAtOnce; ++i) held.push_back(node.want("a"));
  CHECK(node.status().uploads == kUploadsAtOnce);
  node.pass(SwarmSender::kUploadMax);
  std::vector<Asked> later;
  for (std::size_t i = 0; i < kWantsOpen; ++i) later.push_back(node.want("a"));
  CHECK(node.status().uploads == 1);
  CHECK(unit_of(later.back()) == Unit());
  CHECK(unit_of(node.want("b")));
  REQUIRE(unit_of(later.front()));
  end(later.front(), TestVersion::kUnitBytes);
  for (std::size_t i = 0; i < 2; ++i) CHECK(unit_of(node.want("a")));
}

TEST_CASE("a sender serves nodes of ever new names, and keeps those that wait") {
  Sending node(2, 100);
  node.bytes.add(0);
  node.has.add(0);
  const Asked waits = node.want("waits");
  CHECK(!waits->reply);
  node.has = UnitSet(2);
  for (std::size_t i = 0; i < NodeNumbers::kNodesMax + 10; ++i) {
    const Asked asked = node.want(fmt::format("n{}", i));
    REQUIRE(unit_of(asked) == Unit(0));
    end(asked, 0);
  }
  node.come(1);
  CHECK(unit_of(waits) == Unit(1));
}

TEST_CASE("wants for more versions than kVersionsMax are refused without a look at their manifests") {
  ManySent node;
  for (const auto& version : node.versions) node.want(*version, true);
  CHECK(!node.asked.front()->reply);
  CHECK(error_of(node.asked.back()) == Errc::busy);
  CHECK(node.looked == SwarmSender::kVersionsMax);
  CHECK(node.sender->versions().size() == SwarmSender::kVersionsMax);
  node.sender->end();
}

TEST_CASE("a version gives way to another one when it was idle for kIdleMin") {
  ManySent node;
  for (const auto& version : node.versions) {
    node.want(*version, false);
    if (version != node.versions.back()) end(node.asked.back(), 0);
  }
  CHECK(error_of(node.asked.back()) == Errc::busy);
  node.time.pass(SwarmSender::kIdleMin);
  node.want(*node.versions.back(), false);
  CHECK(unit_of(node.asked.back()) == Unit(0));
  CHECK(node.sender->versions().size() == SwarmSender::kVersionsMax);
  CHECK(node.looked == SwarmSender::kVersionsMax + 1);
}

TEST_CASE("a reader's want goes before the other wants of all versions") {
  TestVersion one(kUploadsAtOnce + 2, 100);
  TestVersion other(kUploadsAtOnce + 3, 100);  // with the units of `one`
  for (const TestVersion* read : {&one, &other}) {
    UnitBytes bytes(other);
    bytes.add_all();
    const auto sender = std::make_shared<SwarmSender>(SwarmSender::Parts{
        [&](const Digest& manifest) { return (manifest == one.manifest() ? one : other).find(manifest); },
        [](const Digest& /*manifest*/, const std::string& /*node*/) {}, [] {}});
    sender->begin(bytes);
    const auto ask = [&](std::string_view node, const TestVersion& version, Traffic traffic) {
      auto reply = std::make_shared<KeptReply>();
      sender->receive(node, {version.manifest(), UnitSet(version.units()->count()).encode(), {}, false, false, traffic},
                      PendingReply(reply));
      sender->run();
      return reply;
    };
    std::vector<Asked> held;
    for (std::size_t i = 0; i < kUploadsAtOnce; ++i) held.push_back(ask("a", one, Traffic::ahead));
    const Asked ahead = ask("b", read == &one ? other : one, Traffic::ahead);
    const Asked waited = ask("c", *read, Traffic::foreground);
    CHECK(!waited->reply);
    end(held.front(), 0);
    sender->run();
    CHECK(unit_of(waited));
    CHECK(!ahead->reply);
    end(waited, 0);
    sender->run();
    CHECK(unit_of(ahead));
    sender->end();
  }
}

TEST_CASE("a want of staging goes after all others, and gets a unit when there are none") {
  Sending node(2 * kUploadsAtOnce);
  node.bytes.add_all();
  const auto ask = [&](std::string_view name, Traffic traffic) {
    return node.want_of(name, {node.version.manifest(), node.has.encode(), {}, false, false, traffic});
  };
  std::vector<Asked> held;
  for (std::size_t i = 0; i < kUploadsAtOnce; ++i) held.push_back(ask("a", Traffic::ahead));
  const Asked staging = ask("b", Traffic::staging);
  const Asked ahead = ask("c", Traffic::ahead);
  end(held[0], 0);
  node.sender->run();
  CHECK(unit_of(ahead));
  CHECK(!staging->reply);
  end(held[1], 0);
  node.sender->run();
  CHECK(unit_of(staging));
}

TEST_CASE("a node that claims readers for all its wants does not starve the others") {
  Sending node(2 * kUploadsAtOnce);
  node.bytes.add_all();
  const auto ask = [&](std::string_view name, Traffic traffic) {
    return node.want_of(name, {node.version.manifest(), node.has.encode(), {}, false, false, traffic});
  };
  std::vector<Asked> held;
  for (std::size_t i = 0; i < kUploadsAtOnce; ++i) held.push_back(ask("a", Traffic::ahead));
  const Asked ahead = ask("b", Traffic::ahead);
  std::vector<Asked> claimed;
  for (std::size_t i = 0; i < 4; ++i) claimed.push_back(ask("c", Traffic::foreground));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(!ahead->reply);
    end(held[i], 0);
    node.sender->run();
  }
  CHECK(unit_of(ahead));
}

TEST_CASE("a malformed set is refused, and an unknown version has the error of its lookup") {
  Sending node(4);
  Want want;
  want.manifest = node.version.manifest();
  want.has = {std::byte{0x10}};  // a fifth unit
  CHECK(error_of(node.want_of("a", want)) == Errc::invalid);
  want.has = {std::byte{0}, std::byte{0}};
  CHECK(error_of(node.want_of("a", want)) == Errc::invalid);
  want.manifest = Digest{};
  CHECK(error_of(node.want_of("a", want)) == Errc::not_found);
  CHECK(node.sender->versions().size() == 1);
  CHECK(node.met.empty());
}

TEST_CASE("more wants of one node than kWantsOpen are answered without a unit") {
  Sending node(4);
  for (std::size_t i = 0; i < kWantsOpen; ++i) CHECK(!node.want("a")->reply);
  CHECK(unit_of(node.want("a")) == Unit());
  CHECK(!node.want("b")->reply);
}

TEST_CASE("kWantsWaiting wants wait at a sender, those that it has not looked at too") {
  Sending node(4);
  node.has.add(0);
  Want want;
  want.manifest = node.version.manifest();
  want.has = node.has.encode();
  std::vector<Asked> asked;
  const auto ask = [&](std::size_t number) {
    asked.push_back(std::make_shared<KeptReply>());
    node.sender->receive(fmt::format("n{}", number), want, PendingReply(asked.back()));
  };
  for (std::size_t i = 0; i < kWantsWaiting; ++i) {
    if (i == kWantsWaiting / 2) node.sender->run();
    ask(i);
  }
  CHECK(std::ranges::none_of(asked, [](const Asked& one) { return one->reply.has_value(); }));
  ask(kWantsWaiting);
  CHECK(unit_of(asked.back()) == Unit());
  node.sender->run();
  CHECK(node.status().waiting == kWantsWaiting);
  ask(kWantsWaiting);
  CHECK(unit_of(asked.back()) == Unit());
  node.pass(kWantWaitMax);
  CHECK(node.status().waiting == 0);
  ask(0);
  CHECK(!asked.back()->reply);
}

TEST_CASE("a node whose wants are unwanted, or that has left the cluster, is forgotten") {
  for (const bool left : {false, true}) {
    CAPTURE(left);
    Sending node(1);
    node.bytes.add_all();
    const Asked upload = node.want("a", true);
    REQUIRE(unit_of(upload) == Unit(0));
    const Asked asked = node.want("a", true);
    const Asked other = node.want("b", true);
    CHECK(!other->reply);
    asked->is_wanted = left;
    if (left) {
      node.sender->left("a");
    } else {
      node.sender->unwanted("b");  // its want is wanted all the same
      node.sender->unwanted("a");
    }
    node.sender->run();
    CHECK(unit_of(other) == Unit(0));
    CHECK(node.status().waiting == 0);
    CHECK(node.status().uploads == 1);
  }
}

TEST_CASE("an idle version is forgotten") {
  Sending node(1);
  node.bytes.add_all();
  end(node.want("a"), TestVersion::kUnitBytes);
  CHECK(node.sender->run() == node.time.now() + SwarmSender::kIdleMax);
  node.pass(SwarmSender::kIdleMax);
  CHECK(node.sender->versions().empty());
  CHECK(unit_of(node.want("b")) == Unit(0));
  CHECK(node.status().sent == 0);
  CHECK(node.sender->sent() == 1);
}

TEST_CASE("wants wait until the sender has begun, and end with it") {
  TestVersion version(1);
  UnitBytes bytes(version);
  bytes.add_all();
  int woken = 0;
  const auto sender = std::make_shared<SwarmSender>(
      SwarmSender::Parts{[&](const Digest& manifest) { return version.find(manifest); },
                         [](const Digest& /*manifest*/, const std::string& /*node*/) {}, [&] { ++woken; }});
  const auto ask = [&] {
    auto reply = std::make_shared<KeptReply>();
    sender->receive("a", {version.manifest(), UnitSet(1).encode(), {}, false, false, Traffic::ahead},
                    PendingReply(reply));
    return reply;
  };
  const Asked first = ask();
  CHECK(!sender->run());
  CHECK(!first->reply);
  sender->begin(bytes);
  sender->run();
  CHECK(unit_of(first) == Unit(0));
  const Asked waits = ask();
  sender->run();
  CHECK(!waits->reply);
  sender->end();
  CHECK(error_of(waits) == Errc::unreachable);
  CHECK(unit_of(ask()) == Unit());
  const int before = woken;
  end(first, TestVersion::kUnitBytes);
  sender->unwanted("a");
  CHECK(woken == before);
}

}  // namespace weft::testing

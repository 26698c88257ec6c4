#include "peers/swarm/swarm_receiver.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "fakes/manual_time.h"
#include "log_file.h"
#include "peers/swarm/unit_offer.h"
#include "testing.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;
using Counts = std::map<std::string, std::size_t>;

struct Begun {
  std::string node;
  PeerRequest request;
  CallDone done;
};

// Keeps the calls until the test answers them.
class KeptCalls final : public SwarmCalls {
 public:
  void begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds /*patience*/,
             CallDone done) override {
    begun.push_back({node, must(decode_request(request)), std::move(done)});
  }
  std::vector<Begun> begun;
};

// A receiver of a version with 16 units, and its clock.
struct Receiving {
  explicit Receiving(bool reads = true) : reads_origin(reads) {}
  ~Receiving() { receiver->end(); }

  Status want_all(bool coded = false) { return receiver->want(version.manifest(), version.runs(), coded); }
  void run() { receiver->run(); }
  void pass(std::chrono::milliseconds duration) {
    time.pass(duration);
    run();
  }
  // Takes the first call of this kind to the node.
  template <class Request>
  Begun taken(const std::string& node) {
    const auto at = std::ranges::find_if(calls.begun, [&](const Begun& one) {
      return one.node == node && std::holds_alternative<Request>(one.request);
    });
    REQUIRE(at != calls.begun.end());
    Begun begun = std::move(*at);
    calls.begun.erase(at);
    return begun;
  }
  template <class Request>
  Counts open() const {
    Counts counts;
    for (const Begun& one : calls.begun)
      if (std::holds_alternative<Request>(one.request)) ++counts[one.node];
    return counts;
  }
  void introduce(const Partners& partners, const std::string& directory = "d1") {
    const Begun join = taken<Join>(directory);
    CHECK(std::get<Join>(join.request).state == Join::State::fetches);
    PeerReply reply;
    reply.head = encode_partners(partners);
    join.done(answer(std::move(reply)));
    run();
  }
  // Answers a want of the node with a unit. Returns its set of units, and whether it went to the source.
  Want offer(const std::string& node, std::uint32_t unit) {
    return reply(node, must(offer_of(*version.units(), unit, bytes)));
  }
  Want reply(const std::string& node, PeerReply reply) {
    Begun want = taken<Want>(node);
    reply.ended = [this](std::uint64_t read) { ends.push_back(read); };
    want.done(answer(std::move(reply)));
    return std::get<Want>(std::move(want.request));
  }
  // Answers a want of the clerk.
  Want name(std::uint32_t unit, const std::string& clerk = "d1") {
    Begun want = taken<Want>(clerk);
    PeerReply reply;
    reply.head = encode_offer({unit});
    want.done(answer(std::move(reply)));
    return std::get<Want>(std::move(want.request));
  }
  // Answers the next word to the directory node, and returns it.
  Join word(const std::string& directory = "d1") {
    run();
    Begun begun = taken<Join>(directory);
    PeerReply reply;
    reply.head = encode_partners({});
    begun.done(answer(std::move(reply)));
    return std::get<Join>(std::move(begun.request));
  }
  static Result<std::unique_ptr<Answer>> answer(PeerReply reply) {
    return std::unique_ptr<Answer>(std::make_unique<TestAnswer>(std::move(reply)));
  }
  std::shared_ptr<PeerOffer> take() { return std::dynamic_pointer_cast<PeerOffer>(receiver->take()); }
  UnitSet set_of(const Want& want) const { return must(UnitSet::decode(want.has, version.units()->count())); }
  FetchedVersion status() const {
    const auto versions = receiver->versions();
    REQUIRE(versions.size() == 1);
    return versions.front();
  }

  const bool reads_origin;
  TestVersion version{16};
  UnitBytes bytes{version};
  ManualTime time;
  KeptCalls calls;
  std::string location = "rack1";
  Names directories{"d1", "d2"}, holders{"h", "me"};
  std::vector<std::uint64_t> ends;  // bytes read of each offer that was dropped
  std::shared_ptr<SwarmReceiver> receiver = std::make_shared<SwarmReceiver>(
      SwarmReceiver::Parts{[this](const Digest& manifest) { return version.find(manifest); }, calls, "me",
                           [this] { return location; }, [this](const Digest& /*manifest*/) { return directories; },
                           [this](const Digest& /*manifest*/) { return holders; }, [] {}, 1, time, reads_origin});
};

const Error kSilent{Errc::timed_out, "silent"};

}  // namespace

TEST_CASE("a receiver joins, wants units of its partners and the source, and takes what they offer") {
  Receiving node;
  node.bytes.add_all();
  int told = 0;
  node.receiver->on_change([&] { ++told; });
  REQUIRE(node.want_all().ok());
  node.run();
  REQUIRE(node.calls.begun.size() == 1);
  CHECK(std::get<Join>(node.calls.begun.front().request) ==
        Join{node.version.manifest(), "rack1", Join::State::fetches});
  node.introduce({{"p"}, "s"});
  CHECK(told == 1);  // a partner is known
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen / 2}, {"s", kWantsOpen / 2}});

  const Want of_partner = node.offer("p", 3);
  CHECK(of_partner.manifest == node.version.manifest());
  CHECK(!of_partner.of_source);
  CHECK(!of_partner.hungry);
  CHECK(of_partner.traffic == Traffic::ahead);
  CHECK(node.set_of(of_partner).count() == 0);
  CHECK(node.offer("s", 4).of_source);
  CHECK(told == 3);

  const auto offer = node.take();
  REQUIRE(offer);
  CHECK(offer->manifest() == node.version.manifest());
  REQUIRE(offer->runs().size() == 1);
  CHECK(offer->runs().front().id == node.version.run(3).id);
  CHECK(offer->node() == "p");
  const OfferPlace place = offer->place();
  CHECK(std::ranges::equal(dynamic_cast<TestAnswer&>(*place.answer).read_all(place.head), node.version.bytes(3)));
  CHECK(node.take()->unit() == 4);
  CHECK(!node.receiver->take());
}

TEST_CASE("a unit that arrived is wanted no more, and its node gets another want") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen}});
  node.offer("p", 3);
  const auto offer = node.take();
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen - 1}});
  offer->arrived();
  CHECK(node.ends == std::vector<std::uint64_t>{0});  // the test has read nothing
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen}});
  CHECK(node.status().here == 1);
  CHECK(node.status().received.from_partners == 1);
  for (std::size_t i = 1; i < kWantsOpen; ++i) node.taken<Want>("p");
  const UnitSet has = node.set_of(std::get<Want>(node.taken<Want>("p").request));
  CHECK(has.count() == 1);
  CHECK(has.has(3));
}

TEST_CASE("a unit whose read failed is wanted again, from others at first") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p", "q"}, ""});
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen / 2}, {"q", kWantsOpen / 2}});
  node.offer("p", 3);
  node.take().reset();
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen / 2 - 1}, {"q", kWantsOpen / 2 + 1}});
  CHECK(node.status().here == 0);
  node.offer("q", 3);
  CHECK(node.take());
  CHECK(node.status().declined == 0);
}

TEST_CASE("a unit that was promised already is declined unread") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p", "q"}, ""});
  node.offer("p", 3);
  CHECK(node.ends.empty());
  node.offer("q", 3);
  CHECK(node.ends == std::vector<std::uint64_t>{0});
  CHECK(node.status().declined == 1);
  CHECK(node.take());
  CHECK(!node.take());
  node.receiver->leave(node.version.manifest());
  CHECK(node.receiver->sums().declined == 1);
  CHECK(node.receiver->sums().received.all() == 0);
}

TEST_CASE("an offer with other than the bytes of its unit is not taken") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  PeerReply other = must(offer_of(*node.version.units(), 3, node.bytes));
  other.head = encode_offer({3});
  other.head.push_back(std::byte{1});
  node.reply("p", std::move(other));
  PeerReply none;
  none.head = encode_offer({3});
  node.reply("p", std::move(none));
  PeerReply beyond = must(offer_of(*node.version.units(), 3, node.bytes));
  beyond.head = encode_offer({16});
  node.reply("p", std::move(beyond));
  PeerReply malformed;
  malformed.head = {std::byte{1}};
  node.reply("p", std::move(malformed));
  CHECK(!node.take());
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen - 4}});  // it is asked again after a while
  node.pass(Downloads::kAskFailedAgain);
  CHECK(node.open<Want>()["p"] >= kWantsOpen);
}

TEST_CASE("a receiver with a base asks for names, and takes an offer with a token") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all(true).ok());
  node.run();
  node.introduce({{"p"}, "s"});
  for (const std::string from : {"p", "s"}) {
    const std::uint32_t unit = from == "p" ? 3 : 4;
    CHECK(node.reply(from, must(offer_with_token(*node.version.units(), unit, node.bytes))).names);
    const auto offer = node.take();
    REQUIRE(offer);
    CHECK(offer->has_token());
    CHECK(!offer->by_name());
    CHECK(offer->node() == from);
    CHECK(offer->unit() == unit);
    CHECK(offer->place().head.empty());
    CHECK(offer->place().answer->length(0) == kTokenBytes);
    const std::size_t ends = node.ends.size();
    offer->close();
    CHECK(node.ends.size() == ends + 1);
    CHECK(!offer->place().answer);
    CHECK(offer->has_token());
    CHECK(offer->node() == from);
    offer->arrived();
    CHECK(node.ends.size() == ends + 1);
  }
  CHECK(node.status().received.from_partners == 1);
  CHECK(node.status().received.from_source == 1);
}

TEST_CASE("the answer to a want for a name that has not exactly a token is not taken") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all(true).ok());
  node.run();
  node.introduce({{"p"}, ""});
  const auto named = [](const std::vector<std::size_t>& windows, std::size_t in_head) {
    PeerReply reply;
    reply.head = encode_offer({3});
    reply.head.resize(reply.head.size() + in_head);
    for (const std::size_t size : windows)
      reply.windows.push_back(must(WindowMemory::of_bytes(std::vector<std::byte>(size))));
    return reply;
  };
  node.offer("p", 3);  // the bytes of the unit
  node.reply("p", named({}, 0));
  node.reply("p", named({}, kTokenBytes));
  node.reply("p", named({kTokenBytes}, TestVersion::kUnitBytes));
  node.reply("p", named({kTokenBytes - 1}, 1));
  node.reply("p", named({kTokenBytes - 1}, 0));
  node.reply("p", named({kTokenBytes + 1}, 0));
  node.reply("p", named({kTokenBytes - 1, 1}, 0));
  node.reply("p", named({TestVersion::kUnitBytes, kTokenBytes}, 0));
  CHECK(!node.take());
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen - 9}});
  node.pass(Downloads::kAskFailedAgain);
  node.reply("p", named({kTokenBytes}, 0));
  CHECK(node.take());
}

TEST_CASE("an offer is judged by its want: one that asked for bytes gets bytes, also if names are asked for by now") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  REQUIRE(node.want_all(true).ok());
  CHECK(!node.reply("p", must(offer_with_token(*node.version.units(), 2, node.bytes))).names);
  CHECK(!node.take());
  CHECK(!node.offer("p", 3).names);
  const auto offer = node.take();
  REQUIRE(offer);
  CHECK(!offer->has_token());
  offer->arrived();
  node.pass(Downloads::kAskFailedAgain);
  CHECK(std::get<Want>(node.calls.begun.back().request).names);
}

TEST_CASE("a clerk is asked for no names: it gives nothing else") {
  Receiving node;
  REQUIRE(node.want_all(true).ok());
  node.run();
  node.introduce({{"p"}, "", true});
  std::size_t of_clerk = 0;
  for (const Begun& one : node.calls.begun) {
    const auto* want = std::get_if<Want>(&one.request);
    REQUIRE(want != nullptr);
    CHECK(want->names == !want->of_clerk);
    of_clerk += want->of_clerk ? 1 : 0;
  }
  CHECK(of_clerk == kWantsOpen / 2);
  node.name(3);
  const auto offer = node.take();
  REQUIRE(offer);
  CHECK(offer->by_name());
  CHECK(!offer->has_token());
}

TEST_CASE("a want that is answered without a unit is asked again") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.reply("p", offer_of_nothing());
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen - 1}});
  node.pass(Downloads::kAskAgain);
  CHECK(node.open<Want>()["p"] >= kWantsOpen);
  CHECK(!node.take());
}

TEST_CASE("the second directory node is asked if the first fails") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.taken<Join>("d1").done(kSilent);
  node.run();
  node.introduce({{"p"}, ""}, "d2");
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen}});
}

TEST_CASE("without a directory node the holders are asked, and the directory nodes again after a pause") {
  for (const bool none : {false, true}) {
    CAPTURE(none);
    Receiving node;
    node.bytes.add_all();
    if (none) node.directories.clear();
    REQUIRE(node.want_all().ok());
    node.run();
    if (!none) {
      node.taken<Join>("d1").done(kSilent);
      node.run();
      node.taken<Join>("d2").done(kSilent);
      node.run();
    }
    CHECK(node.open<Want>() == Counts{{"h", kWantsOpen}});
    CHECK(node.open<Join>().empty());
    CHECK(!node.offer("h", 0).of_source);
    CHECK(node.take());
    node.directories = {"d1"};
    node.pass(milliseconds(499));
    CHECK(node.open<Join>().empty());
    node.pass(milliseconds(1));
    CHECK(node.open<Join>() == Counts{{"d1", 1}});
  }
}

TEST_CASE("a receiver that no directory node gives a partner or a source asks the holders") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({});
  CHECK(node.open<Want>() == Counts{{"h", kWantsOpen}});
}

TEST_CASE("a clerk names units to read, and is told how their reads end") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"d1"}, "", true});
  CHECK(node.open<Want>() == Counts{{"d1", kWantsOpen}});  // the node is the clerk and a partner
  const auto of_clerk = [](const Begun& one) {
    const auto* want = std::get_if<Want>(&one.request);
    return want != nullptr && want->of_clerk && !want->of_source;
  };
  CHECK(std::ranges::count_if(node.calls.begun, of_clerk) == kWantsOpen / 2);
  std::erase_if(node.calls.begun, [&](const Begun& one) { return !of_clerk(one); });
  for (const std::uint32_t unit : {3U, 4U, 5U}) CHECK(node.name(unit).of_clerk);
  const auto first = node.take();
  REQUIRE(first);
  CHECK(first->by_name());
  CHECK(first->unit() == 3);
  node.take().reset();  // its read has failed
  first->arrived();
  const Join word = node.word();
  CHECK(word == Join{node.version.manifest(), "", Join::State::lives, {3}, {4}});
  CHECK(node.status().here == 1);
  CHECK(node.status().received.from_origin == 1);
  CHECK(node.receiver->sums().received.from_origin == 1);
  node.take()->arrived();
  CHECK(node.word().read == std::vector<std::uint32_t>{5});
  node.run();
  CHECK(node.open<Join>().empty());
}

TEST_CASE("units are counted by who gave them") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, "s"});
  node.offer("p", 0);
  for (const std::uint32_t unit : {1U, 2U}) node.offer("s", unit);
  node.offer("s", 3);
  for (int i = 0; i < 3; ++i) node.take()->arrived();
  node.take().reset();  // its read has failed
  for (const ReceivedUnits& received : {node.status().received, node.receiver->sums().received}) {
    CHECK(received.from_partners == 1);
    CHECK(received.from_source == 2);
    CHECK(received.all() == 3);
  }
}

TEST_CASE("a unit that a clerk names although it was promised is reported as not read") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, "", true});
  node.offer("p", 3);
  node.name(3);
  CHECK(!node.take()->by_name());
  CHECK(!node.take());
  CHECK(node.word() == Join{node.version.manifest(), "", Join::State::lives, {}, {3}});
  CHECK(node.status().declined == 1);
}

TEST_CASE("bytes of a clerk and a mere name of a partner are not taken") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, "", true});
  node.name(3, "p");
  node.offer("d1", 4);
  CHECK(!node.take());
}

TEST_CASE("a receiver without an origin asks no clerk") {
  Receiving node(false);
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, "", true});
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen}});
}

TEST_CASE("a source that lacks units is a mere partner from then on, and a clerk is asked instead") {
  for (const bool clerk : {true, false}) {
    CAPTURE(clerk);
    Receiving node;
    node.bytes.add_all();
    REQUIRE(node.want_all().ok());
    node.run();
    node.introduce({{}, "s", clerk});
    CHECK(node.open<Want>() == Counts{{"s", kWantsOpen}});
    while (node.open<Want>()["s"] > 0) node.taken<Want>("s").done(Error{Errc::absent, "lacks a unit"});
    node.run();
    CHECK(node.open<Want>()["d1"] == (clerk ? kWantsOpen : 0));
    CHECK(node.open<Want>()["s"] == 0);
    node.pass(Downloads::kAskFailedAgain);
    CHECK(!node.offer("s", 5).of_source);
    CHECK(node.take());
    node.run();
    node.introduce({{}, "s", clerk});  // it is hungry, and the directory node does not know
    if (clerk)
      CHECK(node.name(6).of_clerk);
    else
      CHECK(!node.offer("s", 6).of_source);
  }
}

TEST_CASE("a source that lacked units is asked as the source again after kLostSource") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{}, "s"});
  while (node.open<Want>()["s"] > 0) node.taken<Want>("s").done(Error{Errc::absent, "lacks a unit"});
  node.pass(SwarmSession::kLostSource);
  node.introduce({{}, "s"});
  node.pass(Downloads::kAskFailedAgain);
  CHECK(node.offer("s", 6).of_source);
}

TEST_CASE("a clerk dies, and the second directory node becomes the clerk") {
  Receiving node;
  node.holders.clear();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{}, "", true});
  node.name(3);
  node.take()->arrived();
  node.run();
  node.taken<Join>("d1").done(kSilent);  // the report
  node.run();
  node.taken<Join>("d1").done(kSilent);  // the receiver asks for another clerk
  while (node.open<Want>()["d1"] > 0) node.taken<Want>("d1").done(kSilent);
  node.run();
  node.introduce({{}, "", true}, "d2");
  CHECK(node.open<Want>() == Counts{{"d2", kWantsOpen}});
  const Want want = node.name(4, "d2");
  CHECK(want.of_clerk);
  CHECK(node.set_of(want).has(3));
  node.take()->arrived();
  CHECK(node.word("d2").read == std::vector<std::uint32_t>{4});
}

TEST_CASE("a clerk that has left the cluster is asked no more, and another is found") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{}, "", true});
  node.receiver->left("d1");
  node.run();
  CHECK(node.open<Join>() == Counts{{"d1", 1}});
  node.name(3);
  CHECK(!node.take());
}

TEST_CASE("a receiver is no partner of itself, and a node that asks it is one") {
  Receiving node;
  node.holders.clear();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"me"}, "me"});
  CHECK(node.open<Want>().empty());
  node.receiver->met(node.version.manifest(), "me");
  node.receiver->met(Digest{}, "p");
  node.run();
  CHECK(node.open<Want>().empty());
  node.receiver->met(node.version.manifest(), "p");
  node.run();
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen}});
}

TEST_CASE("a node with a wrong chunk gets no wants again") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p", "q"}, ""});
  node.offer("p", 3);
  {
    const auto offer = node.take();
    offer->refuted();
  }
  while (node.open<Want>().contains("p")) node.taken<Want>("p").done(kSilent);
  node.pass(seconds(2));
  CHECK(!node.open<Want>().contains("p"));
  CHECK(node.open<Want>()["q"] >= kWantsOpen);
  node.receiver->met(node.version.manifest(), "p");
  node.pass(seconds(2));
  CHECK(!node.open<Want>().contains("p"));
}

TEST_CASE("the log names a node with wrong chunks once") {
  const LogFile log("info");
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  std::vector<std::shared_ptr<PeerOffer>> offers;
  for (const std::uint32_t unit : {3, 4}) {
    node.offer("p", unit);
    offers.push_back(node.take());
  }
  for (const auto& offer : offers) offer->refuted();
  CHECK(log.has(": p gave bytes with another digest"));
  CHECK(log.count("gave bytes") == 1);
}

TEST_CASE("strangers that a directory node names are dropped, and the holders asked instead, once for each answer") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  Names strangers;
  for (std::size_t i = 0; i < Downloads::kPartnersMax; ++i) strangers.push_back(fmt::format("x{}", i));
  node.introduce({strangers, "another"});
  const Error no_member{Errc::unreachable, "is no member any more"};
  const auto refuse_all = [&] {
    for (int i = 0; i < 200; ++i) {
      while (!node.open<Want>().empty()) node.taken<Want>(node.open<Want>().begin()->first).done(no_member);
      node.pass(milliseconds(100));
    }
  };
  std::size_t asked_holder = 0;
  for (int i = 0; i < 400 && asked_holder == 0; ++i) {
    const Counts open = node.open<Want>();
    if (open.contains("h")) ++asked_holder;
    for (const auto& [name, count] : open)
      for (std::size_t want = 0; name != "h" && want < count; ++want) node.taken<Want>(name).done(no_member);
    node.pass(milliseconds(100));
  }
  CHECK(asked_holder == 1);
  refuse_all();  // of the holder too
  CHECK(node.status().partners == 0);
  CHECK(node.open<Want>().empty());
}

TEST_CASE("nodes with ever new names do not keep a receiver from its partners") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.receiver->met(node.version.manifest(), "q");
  for (std::size_t i = 0; i < NodeNumbers::kNodesMax + 10; ++i)
    node.receiver->met(node.version.manifest(), fmt::format("n{}", i));
  CHECK(node.status().partners == Downloads::kPartnersMax);
  node.receiver->left("n0");
  node.receiver->met(node.version.manifest(), "r");
  node.pass(milliseconds(1));
  CHECK(node.status().partners == Downloads::kPartnersMax);
  node.pass(Hunger::kHungryAfter);  // each partner hears of the hunger
  for (const char* partner : {"p", "q", "r"}) CHECK(node.open<Want>().contains(partner));
}

TEST_CASE("a partner that is silent stays away, though its directory node names it again") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p", "q"}, ""});
  for (std::size_t i = 0; i < SwarmSession::kSilencesMax; ++i) node.taken<Want>("p").done(kSilent);
  while (node.open<Want>().contains("p")) node.taken<Want>("p").done(kSilent);
  CHECK(node.status().partners == 1);
  node.pass(Hunger::kHungryAfter);
  node.introduce({{"p"}, ""});  // it may have been restarted
  CHECK(node.status().partners == 2);
  node.taken<Want>("p").done(kSilent);
  CHECK(node.status().partners == 1);
}

TEST_CASE("a node that is silent again and again, or leaves the cluster, is no partner any more") {
  for (const bool leaves : {false, true}) {
    CAPTURE(leaves);
    Receiving node;
    REQUIRE(node.want_all().ok());
    node.run();
    node.introduce({{"p", "q"}, ""});
    CHECK(node.status().partners == 2);
    if (leaves) node.receiver->left("p");
    while (node.open<Want>().contains("p")) node.taken<Want>("p").done(kSilent);
    node.pass(seconds(2));
    CHECK(!node.open<Want>().contains("p"));
    CHECK(node.status().partners == 1);
    node.receiver->met(node.version.manifest(), "p");
    node.run();
    CHECK(node.status().partners == 2);
  }
}

TEST_CASE("a hungry receiver joins again, and says in its wants that it is hungry") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.pass(Hunger::kHungryAfter);
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen + 1}});
  CHECK(std::get<Want>(node.calls.begun.back().request).hungry);
  CHECK(node.status().hungry);
  node.introduce({{"q"}, ""});
  CHECK(node.open<Want>() == Counts{{"p", kWantsOpen + 1}, {"q", 1}});
}

TEST_CASE("the log tells of each spell of hunger once") {
  const LogFile log("info,peers=debug");
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  CHECK(log.count("hungry") == 0);
  for (int i = 0; i < 3; ++i) node.pass(Hunger::kHungryAfter);
  const std::string swarm = fmt::format("debug: peers: swarm of manifest {}: ", to_hex(node.version.manifest()));
  CHECK(log.has(swarm + "hungry, has 0 of 16 units and 1 partners\n"));
  CHECK(log.count("hungry") == 1);
  node.offer("p", 3);
  node.take()->arrived();
  node.run();
  CHECK(!node.status().hungry);
  CHECK(log.count("hungry") == 1);
  node.pass(seconds(3));
  CHECK(log.has(swarm + "hungry, has 1 of 16 units and 1 partners\n"));
  CHECK(log.count("hungry") == 2);
}

TEST_CASE("the directory node hears that a receiver lives, and that it has finished") {
  Receiving node;
  node.bytes.add_all();
  const ChunkRun run = node.version.run(5);
  REQUIRE(node.receiver->want(node.version.manifest(), std::span(&run, 1)).ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 5);
  node.pass(SwarmSession::kLivesEvery - seconds(1));
  CHECK(node.open<Join>().empty());
  node.pass(seconds(1));
  const Begun lives = node.taken<Join>("d1");
  CHECK(std::get<Join>(lives.request).state == Join::State::lives);
  PeerReply known;
  known.head = encode_partners({});
  lives.done(Receiving::answer(std::move(known)));
  node.take()->arrived();
  CHECK(node.status().done);
  node.run();
  CHECK(std::get<Join>(node.taken<Join>("d1").request).state == Join::State::finished);
  node.pass(SwarmSession::kDoneKept - seconds(1));
  CHECK(node.open<Join>().empty());
  CHECK(node.status().here == 1);
  node.pass(seconds(1));
  CHECK(node.receiver->versions().empty());
}

TEST_CASE("a receiver joins again if its directory node has gone") {
  Receiving node;
  node.bytes.add_all();
  const ChunkRun run = node.version.run(5);
  REQUIRE(node.receiver->want(node.version.manifest(), std::span(&run, 1)).ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 5);  // no unit is left to be hungry for
  node.pass(SwarmSession::kLivesEvery);
  node.taken<Join>("d1").done(kSilent);
  node.run();
  CHECK(std::get<Join>(node.taken<Join>("d1").request).state == Join::State::fetches);
}

TEST_CASE("a version that has finished joins again for more units") {
  Receiving node;
  node.bytes.add_all();
  const ChunkRun first = node.version.run(5);
  REQUIRE(node.receiver->want(node.version.manifest(), std::span(&first, 1)).ok());
  node.run();
  node.introduce({{"p"}, ""});
  const UnitSet has = node.set_of(node.offer("p", 5));
  CHECK(has.count() == 15);
  CHECK(!has.has(5));
  node.take()->arrived();
  node.run();
  node.taken<Join>("d1");  // finished
  CHECK(node.want_all().ok());
  CHECK(!node.status().done);
  node.run();
  CHECK(std::get<Join>(node.taken<Join>("d1").request).state == Join::State::fetches);
}

TEST_CASE("a chunk that had arrived and is wanted again was lost") {
  Receiving node;
  node.bytes.add_all();
  const ChunkRun run = node.version.run(5);
  const auto want = [&] { REQUIRE(node.receiver->want(node.version.manifest(), std::span(&run, 1)).ok()); };
  want();
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 5);
  const auto unit = node.take();
  node.receiver->arrived(node.version.manifest(), std::span(&run, 1));
  unit->arrived();
  REQUIRE(node.status().done);
  want();
  CHECK(!node.status().done);
  CHECK(node.status().here == 0);
  node.pass(seconds(1));
  CHECK(!node.set_of(node.offer("p", 5)).has(5));
  node.take()->arrived();
  CHECK(node.status().done);
}

TEST_CASE("a read that takes far longer than usual is given up if its unit is the last, or a reader waits for it") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    Receiving node;
    node.bytes.add_all();
    REQUIRE(node.want_all().ok());
    node.run();
    node.introduce({{"p", "q"}, ""});
    node.offer("p", 0);
    const auto slow = node.take();
    if (waits) node.receiver->wait_for(node.version.manifest(), node.version.run(0));
    const std::uint32_t end = waits ? 15 : 16;  // q lacks the unit 15
    for (std::uint32_t unit = 1; unit < end; ++unit) {
      node.offer("q", unit);
      node.time.pass(milliseconds(100));
      node.take()->arrived();
      node.run();
    }
    node.pass(ReadTimes::kSlowRead - 16 * milliseconds(100));
    CHECK(slow->is_wanted());
    node.pass(milliseconds(200));
    CHECK_FALSE(slow->is_wanted());
    slow->arrived();  // it came at the last moment
    CHECK(node.status().here == end);
  }
}

TEST_CASE("a unit that was given up comes from another node, and its sender is not asked for a while") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p", "q"}, ""});
  node.offer("p", 0);
  auto slow = node.take();
  for (std::uint32_t unit = 1; unit < 16; ++unit) {
    node.offer("q", unit);
    node.time.pass(milliseconds(1));
    node.take()->arrived();
    node.run();
  }
  node.pass(ReadTimes::kSlowRead);
  REQUIRE_FALSE(slow->is_wanted());
  node.calls.begun.clear();
  slow.reset();
  node.run();
  const Counts open = node.open<Want>();
  CHECK(open.contains("q"));
  CHECK_FALSE(open.contains("p"));
  CHECK_FALSE(node.set_of(std::get<Want>(node.calls.begun.back().request)).has(0));
}

TEST_CASE("a slow read goes on if no other node is known, or none has ended yet") {
  for (const bool alone : {false, true}) {
    CAPTURE(alone);
    Receiving node;
    node.bytes.add_all();
    const ChunkRun run = node.version.run(0);
    REQUIRE(node.receiver->want(node.version.manifest(), std::span(&run, 1)).ok());
    node.run();
    node.introduce({alone ? Names{"p"} : Names{"p", "q"}, ""});
    node.offer("p", 0);
    const auto slow = node.take();
    node.pass(seconds(100));
    CHECK(slow->is_wanted());
  }
}

TEST_CASE("a join says where the node is by then") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.location = "rack2";
  node.pass(Hunger::kHungryAfter);
  CHECK(std::get<Join>(node.taken<Join>("d1").request) == Join{node.version.manifest(), "rack2", Join::State::fetches});
}

TEST_CASE("chunks that came by another way are wanted no more") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 0);
  const auto offer = node.take();
  node.receiver->arrived(node.version.manifest(), node.version.runs());
  CHECK(!node.status().done);  // the unit 0 is being read
  CHECK(node.status().here == 15);
  offer->arrived();
  CHECK(node.status().done);
}

TEST_CASE("an offer that is dropped after its chunks came by another way did not fail") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 0);
  auto offer = node.take();
  const ChunkRun run = node.version.run(0);
  node.receiver->arrived(node.version.manifest(), std::span(&run, 1));
  CHECK(node.status().here == 0);
  offer.reset();
  CHECK(node.status().here == 1);
}

TEST_CASE("a want names the unit that a reader waits for") {
  Receiving node;
  REQUIRE(node.want_all().ok());
  node.receiver->wait_for(node.version.manifest(), node.version.run(7));
  node.run();
  node.introduce({{"p"}, ""});
  const Want want = node.reply("p", offer_of_nothing());
  CHECK(want.first == 7U);
  CHECK(want.traffic == Traffic::foreground);
  node.receiver->stop_waiting(node.version.manifest(), node.version.run(7));
  node.pass(Downloads::kAskAgain);
  const auto last = std::get<Want>(node.calls.begun.back().request);
  CHECK(!last.first);
}

TEST_CASE("a receiver leaves its directory node, and drops later offers") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 0);
  node.receiver->leave(node.version.manifest());
  CHECK(node.receiver->versions().empty());
  node.run();
  CHECK(std::get<Join>(node.taken<Join>("d1").request).state == Join::State::leaves);
  CHECK(node.set_of(std::get<Want>(node.calls.begun.back().request)).all());  // it ends the session at the partner
  node.offer("p", 1);
  CHECK(node.ends.size() == 1);
  const auto open = node.take();  // an open offer is still read
  REQUIRE(open);
  CHECK(open->unit() == 0);
  open->arrived();
  CHECK(node.receiver->sums().received.from_partners == 1);
  CHECK(!node.take());
}

TEST_CASE("a receiver that has finished and lost units leaves, and one that still fetches stays") {
  Receiving node;
  node.bytes.add_all();
  const ChunkRun run = node.version.run(0);
  REQUIRE(node.receiver->want(node.version.manifest(), std::span(&run, 1)).ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 0);
  node.receiver->lost(node.version.manifest());
  CHECK(node.receiver->versions().size() == 1);
  node.take()->arrived();
  CHECK(node.word().state == Join::State::finished);
  node.receiver->lost(node.version.manifest());
  CHECK(node.receiver->versions().empty());
  CHECK(node.word().state == Join::State::leaves);
}

TEST_CASE("chunks of another version, or of one that is not local, are not wanted") {
  Receiving node;
  const ChunkRun other{blob_named(99, 5), 0, 1};
  CHECK(node.receiver->want(node.version.manifest(), std::span(&other, 1)).error().code == Errc::invalid);
  CHECK(node.receiver->want(Digest{}, std::span(&other, 1)).error().code == Errc::not_found);
  CHECK(node.receiver->versions().empty());
}

TEST_CASE("a receiver that has ended drops its offers, and calls nobody") {
  Receiving node;
  node.bytes.add_all();
  REQUIRE(node.want_all().ok());
  node.run();
  node.introduce({{"p"}, ""});
  node.offer("p", 0);
  node.receiver->end();
  CHECK(node.ends.size() == 1);
  CHECK(!node.take());
  node.taken<Want>("p").done(kSilent);
  const std::size_t calls = node.calls.begun.size();
  CHECK(!node.receiver->run());
  CHECK(node.calls.begun.size() == calls);
  CHECK(node.want_all().error().code == Errc::cancelled);
}

}  // namespace weft::testing

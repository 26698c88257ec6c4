#include "peers/swarm_messages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <variant>

#include "base/limits.h"
#include "base/sha256.h"
#include "peers/messages.h"
#include "swarm/unit_set.h"
#include "testing.h"
#include "weft/cluster/exchange.h"

namespace weft::testing {
namespace {

Digest digest_of(std::uint64_t seed) {
  return sha256(random_bytes(32, seed));
}

Join join_at(std::string location) {
  return {digest_of(1), std::move(location), Join::State::fetches};
}

Want want_of(std::size_t set_bytes, std::optional<std::uint32_t> first = {}) {
  return {digest_of(2), random_bytes(set_bytes, 3), first, false, false, Traffic::ahead};
}

// The request as the called node decodes it.
template <class Message>
Result<Message> received(const Message& message) {
  WEFT_TRY(const PeerRequest request, decode_request(encode_request(message)));
  const auto* got = std::get_if<Message>(&request);
  REQUIRE(got != nullptr);
  return *got;
}

template <class Message>
bool survives(const Message& message) {
  const auto got = received(message);
  return got.ok() && *got == message;
}

template <class Message>
bool refused(const Message& message) {
  const auto got = received(message);
  return !got.ok() && got.error().code == Errc::invalid;
}

bool survives(const Partners& partners) {
  const auto got = decode_partners(encode_partners(partners));
  return got.ok() && *got == partners;
}

bool refused(const Partners& partners) {
  const auto got = decode_partners(encode_partners(partners));
  return !got.ok() && got.error().code == Errc::invalid;
}

// So many different ids, each as long as an id may be.
std::vector<std::string> longest_ids(std::size_t count) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < count; ++i) {
    std::string id = std::to_string(i);
    ids.push_back(id + std::string(limits::kNodeIdMax - id.size(), 'n'));
  }
  return ids;
}

}  // namespace

TEST_CASE("a join survives encoding in every state") {
  for (const auto state : {Join::State::fetches, Join::State::lives, Join::State::finished, Join::State::leaves})
    CHECK(survives(Join{digest_of(1), "rack-7/row_B", state}));
  CHECK(survives(join_at("")));
  CHECK(survives(join_at("!~")));
  CHECK(survives(join_at(std::string(kLocationBytesMax, 'l'))));
}

TEST_CASE("a report of units survives encoding, and the longest fits into one message") {
  const std::vector<std::uint32_t> most(kReportMax, kUnitsMax - 1);
  for (const auto state : {Join::State::lives, Join::State::finished, Join::State::leaves}) {
    CHECK(survives(Join{digest_of(1), "", state, {0, 7}, {}}));
    CHECK(survives(Join{digest_of(1), "", state, {}, {5}}));
    CHECK(survives(Join{digest_of(1), "", state, most, most}));
  }
  CHECK(encode_request(Join{digest_of(1), "", Join::State::lives, most, most}).size() <= kRequestBytesMax);
}

TEST_CASE("a report of too many or impossible units is refused, and one of a node that joins") {
  const std::vector<std::uint32_t> too_many(kReportMax + 1);
  CHECK(refused(Join{digest_of(1), "", Join::State::lives, too_many, {}}));
  CHECK(refused(Join{digest_of(1), "", Join::State::lives, {}, too_many}));
  CHECK(refused(Join{digest_of(1), "", Join::State::lives, {kUnitsMax}, {}}));
  CHECK(refused(Join{digest_of(1), "", Join::State::lives, {}, {UINT32_MAX}}));
  CHECK(refused(Join{digest_of(1), "", Join::State::fetches, {1}, {}}));
  CHECK(refused(Join{digest_of(1), "", Join::State::fetches, {}, {1}}));
}

TEST_CASE("a join with another location or state is refused") {
  CHECK(refused(join_at(std::string(kLocationBytesMax + 1, 'l'))));
  CHECK(refused(join_at(std::string(1U << 20U, 'l'))));
  CHECK(refused(join_at("rack 7")));
  CHECK(refused(join_at("rack\t7")));
  CHECK(refused(join_at(std::string("rack\0", 5))));
  CHECK(refused(join_at("rack\x7f")));
  CHECK(
      refused(join_at("r\xc3\xa4"
                      "ck")));
  CHECK(refused(Join{digest_of(1), "", static_cast<Join::State>(4)}));
}

TEST_CASE("a want survives encoding, and the largest fits into one message") {
  CHECK(survives(want_of(1)));
  CHECK(survives(want_of(1, 0)));  // unit 0 is not "no unit"
  CHECK(survives(want_of(1, 7)));
  for (const auto traffic : {Traffic::foreground, Traffic::ahead, Traffic::staging}) {
    const Want largest{digest_of(2), random_bytes(kUnitSetBytesMax, 3), kUnitsMax - 1, true, true, traffic, true};
    CHECK(survives(largest));
    CHECK(encode_request(largest).size() <= kRequestBytesMax);
  }
  Want named = want_of(kUnitSetBytesMax, kUnitsMax - 1);
  named.names = true;
  CHECK(survives(named));
  CHECK(encode_request(named).size() <= kRequestBytesMax);
  CHECK(UnitSet::full(kUnitsMax).encode().size() == kUnitSetBytesMax);
}

TEST_CASE("a want beyond the limits is refused") {
  CHECK(refused(want_of(0)));
  CHECK(refused(want_of(kUnitSetBytesMax + 1)));
  CHECK(refused(want_of(1, 8)));
  CHECK(refused(want_of(kUnitSetBytesMax, kUnitsMax)));
  CHECK(refused(want_of(kUnitSetBytesMax, UINT32_MAX)));
  Want want = want_of(1);
  want.traffic = static_cast<Traffic>(3);
  CHECK(refused(want));
  want = want_of(1);
  want.of_clerk = want.names = true;
  CHECK(refused(want));
}

TEST_CASE("partners survive encoding, and the most fit into one message") {
  CHECK(survives(Partners{}));
  CHECK(survives(Partners{{"one", "two"}, ""}));
  CHECK(survives(Partners{{}, "source"}));
  CHECK(survives(Partners{{"one"}, "", true}));
  CHECK(survives(Partners{{}, "source", true}));
  const Partners most{longest_ids(Downloads::kPartnersMax), std::string(limits::kNodeIdMax, 's')};
  CHECK(survives(most));
  CHECK(encode_partners(most).size() <= kShortHeadBytesMax);
}

TEST_CASE("partners beyond the limits are refused") {
  CHECK(refused(Partners{longest_ids(Downloads::kPartnersMax + 1), ""}));
  CHECK(refused(Partners{longest_ids(10'000), ""}));
  CHECK(refused(Partners{{std::string(limits::kNodeIdMax + 1, 'n')}, ""}));
  CHECK(refused(Partners{{"one", ""}, ""}));
  CHECK(refused(Partners{{"one", "two", "one"}, ""}));
  CHECK(refused(Partners{{}, std::string(limits::kNodeIdMax + 1, 's')}));
  CHECK(!decode_partners({}).ok());
  CHECK(!decode_partners(std::vector<std::byte>(64)).ok());
}

TEST_CASE("an offer survives encoding, with the bytes behind it") {
  const auto bytes = random_bytes(100, 5);
  for (const std::uint32_t unit : {0U, 1U, kUnitsMax - 1}) {
    auto head = encode_offer({unit});
    CHECK(head.size() == kOfferBytes);
    CHECK(decode_offer(head).value().offer == Offer{unit});
    CHECK(decode_offer(head).value().bytes.empty());
    head.insert(head.end(), bytes.begin(), bytes.end());
    const auto offered = decode_offer(head);
    REQUIRE(offered.ok());
    CHECK(offered->offer == Offer{unit});
    CHECK(std::ranges::equal(offered->bytes, bytes));
  }
  const auto none = decode_offer(encode_offer({}));
  REQUIRE(none.ok());
  CHECK(!none->offer.unit);
  CHECK(none->bytes.empty());
}

TEST_CASE("an offer of an impossible unit, or of bytes without a unit, is refused") {
  const auto code = [](std::span<const std::byte> head) { return decode_offer(head).error().code; };
  CHECK(code({}) == Errc::corrupt);
  CHECK(code(std::vector<std::byte>(kOfferBytes - 1)) == Errc::corrupt);
  CHECK(code(encode_offer({kUnitsMax})) == Errc::corrupt);
  CHECK(code(encode_offer({UINT32_MAX - 1})) == Errc::corrupt);
  auto bytes_of_none = encode_offer({});
  bytes_of_none.push_back({});
  CHECK(code(bytes_of_none) == Errc::corrupt);
}

TEST_CASE("a swarm message that is cut short or changed keeps its bounds, or is refused") {
  const auto check_request = [](std::span<const std::byte> bytes) {
    const auto request = decode_request(bytes);
    if (!request.ok()) return;
    if (const auto* want = std::get_if<Want>(&*request)) {
      CHECK(!want->has.empty());
      CHECK(want->has.size() <= kUnitSetBytesMax);
      if (want->first) CHECK(*want->first < 8 * want->has.size());
    }
    if (const auto* join = std::get_if<Join>(&*request)) {
      CHECK(join->location.size() <= kLocationBytesMax);
      CHECK(join->read.size() <= kReportMax);
      CHECK(join->unread.size() <= kReportMax);
    }
  };
  const auto check_partners = [](std::span<const std::byte> bytes) {
    const auto partners = decode_partners(bytes);
    if (partners.ok()) CHECK(partners->nodes.size() <= Downloads::kPartnersMax);
  };
  const auto join = encode_request(join_at("rack-7"));
  const auto want = encode_request(want_of(20, 100));
  const auto report = encode_request(Join{digest_of(1), "", Join::State::lives, {1, 2}, {3}});
  const auto partners = encode_partners({{"one", "two"}, "source"});
  for (const auto& whole : {join, report, want, partners})
    for (std::size_t at = 0; at < whole.size(); ++at) {
      check_request(std::span(whole).first(at));
      check_partners(std::span(whole).first(at));
      auto changed = whole;
      changed[at] ^= std::byte{0xff};
      check_request(changed);
      check_partners(changed);
    }
}

}  // namespace weft::testing

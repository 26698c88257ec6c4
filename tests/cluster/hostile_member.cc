#include "hostile_member.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "hostile_answers.h"
#include "peers/swarm/unit_offer.h"
#include "swarm/unit_set.h"

namespace weft::hostile {
namespace {

constexpr std::size_t kCrowd = 10'000;

// A Want, and what answers it.
struct Asked {
  const VersionUnits& version;
  const UnitSet& has;  // of the asker
  LocalBytes& bytes;
};

// A Join, and what answers it.
struct Joined {
  std::string_view asker;
  std::span<const std::string> others;  // nodes that joined before
  std::size_t joins;                    // so far
};

using Bytes = std::vector<std::byte>;

Result<PeerReply> offer_of_other_bytes(const Asked& asked, void (*change)(Bytes& bytes)) {
  const auto unit = UnitSet::full(asked.version.count()).first_not_in(asked.has);
  if (!unit) return offer_of_nothing();
  WEFT_TRY(PeerReply reply, offer_of(asked.version, *unit, asked.bytes));
  const bool in_head = reply.windows.empty();
  Bytes bytes = in_head ? Bytes(reply.head.begin() + kOfferBytes, reply.head.end()) : in_windows(reply);
  change(bytes);
  reply = PeerReply{encode_offer({unit}), {}};
  if (in_head) {
    reply.head.insert(reply.head.end(), bytes.begin(), bytes.end());
    return reply;
  }
  WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
  reply.windows.push_back(std::move(window));
  return reply;
}

Result<PeerReply> offer_nothing(const Asked& /*asked*/) {
  return offer_of_nothing();
}

Result<PeerReply> offer_wrong(const Asked& asked) {
  return offer_of_other_bytes(asked, [](Bytes& bytes) { bytes[bytes.size() / 2] ^= std::byte{1}; });
}

Result<PeerReply> offer_short(const Asked& asked) {
  return offer_of_other_bytes(asked, [](Bytes& bytes) { bytes.pop_back(); });
}

Result<PeerReply> offer_long(const Asked& asked) {
  return offer_of_other_bytes(asked, [](Bytes& bytes) { bytes.push_back({}); });
}

Result<PeerReply> offer_unknown(const Asked& asked) {
  WEFT_TRY(PeerReply reply, offer_of(asked.version, 0, asked.bytes));
  const auto head = encode_offer({asked.version.count()});
  std::ranges::copy(head, reply.head.begin());
  return reply;
}

Result<PeerReply> offer_held(const Asked& asked) {
  const auto unit = asked.has.first_not_in(UnitSet(asked.version.count()));
  return unit ? offer_of(asked.version, *unit, asked.bytes) : offer_of_nothing();
}

Partners introduce_nobody(const Joined& /*join*/) {
  return {};
}

Partners introduce(std::size_t strangers) {
  Partners partners;
  for (std::size_t i = 0; i < strangers; ++i) partners.nodes.push_back(fmt::format("stranger{}", i));
  partners.source = "strange-source";
  return partners;
}

Partners introduce_strangers(const Joined& /*join*/) {
  return introduce(Downloads::kPartnersMax);
}

Partners introduce_crowd(const Joined& /*join*/) {
  return introduce(kCrowd);
}

Partners introduce_asker(const Joined& join) {
  return {{std::string(join.asker)}, std::string(join.asker)};
}

Partners introduce_sources(const Joined& join) {
  Partners partners;
  partners.source = join.others.empty() ? "strange-source" : join.others[join.joins % join.others.size()];
  return partners;
}

}  // namespace

struct MemberFault {
  std::string_view name;
  Result<PeerReply> (*to_want)(const Asked& asked);  // null: a want is never answered
  Partners (*to_join)(const Joined& join);           // null: a join is never answered
};

namespace {

constexpr std::array kFaults{
    MemberFault{"unit-none", offer_nothing, introduce_nobody},
    MemberFault{"unit-silent", nullptr, introduce_nobody},
    MemberFault{"unit-wrong", offer_wrong, introduce_nobody},
    MemberFault{"unit-short", offer_short, introduce_nobody},
    MemberFault{"unit-long", offer_long, introduce_nobody},
    MemberFault{"unit-unknown", offer_unknown, introduce_nobody},
    MemberFault{"unit-held", offer_held, introduce_nobody},
    MemberFault{kLacksAll, offer_nothing, introduce_nobody},
    MemberFault{"join-nobody", offer_nothing, introduce_nobody},
    MemberFault{"join-silent", offer_nothing, nullptr},
    MemberFault{"join-strangers", offer_nothing, introduce_strangers},
    MemberFault{"join-asker", offer_nothing, introduce_asker},
    MemberFault{"join-sources", offer_nothing, introduce_sources},
    MemberFault{"join-crowd", offer_nothing, introduce_crowd},
};

}  // namespace

bool is_member_fault(std::string_view name) {
  return std::ranges::find(kFaults, name, &MemberFault::name) != kFaults.end();
}

HostileMember::HostileMember(Store& store, LocalBytes& bytes, std::string_view fault)
    : fault_(*std::ranges::find(kFaults, fault, &MemberFault::name)), versions_(store), bytes_(bytes) {}

// A report of the caller's state gets the answer of a daemon.
void HostileMember::receive(std::string_view node, Join join, PendingReply reply) {
  if (join.state != Join::State::fetches) return reply.give(PeerReply{encode_partners({}), {}});
  auto partners = introduce(node);
  if (!partners) return keep(std::move(reply));
  reply.give(*std::move(partners));
}

// Returns nothing if the join is not answered.
std::optional<PeerReply> HostileMember::introduce(std::string_view asker) {
  const std::lock_guard lock(mutex_);
  ++heard_.joins;
  if (fault_.to_join == nullptr) return std::nullopt;
  std::vector<std::string> others = joined_;
  std::erase(others, asker);
  if (others.size() == joined_.size()) joined_.emplace_back(asker);
  return PeerReply{encode_partners(fault_.to_join({asker, others, heard_.joins})), {}};
}

void HostileMember::receive(std::string_view node, Want want, PendingReply reply) {
  {
    const std::lock_guard lock(mutex_);
    ++heard_.wants[std::string(node)];
  }
  if (fault_.to_want == nullptr) return keep(std::move(reply));
  reply.give(answer(want));
}

Result<PeerReply> HostileMember::answer(const Want& want) {
  WEFT_TRY(const auto version, versions_.find(want.manifest));
  WEFT_TRY(const UnitSet has, UnitSet::decode(want.has, version->count()));
  WEFT_TRY(PeerReply reply, fault_.to_want({*version, has, bytes_}));
  WEFT_TRY(const OfferHead offer, decode_offer(reply.head));
  const std::lock_guard lock(mutex_);
  if (offer.offer.unit) ++heard_.offers;
  return reply;
}

void HostileMember::keep(PendingReply reply) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(reply));
}

HostileMember::Heard HostileMember::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

}  // namespace weft::hostile

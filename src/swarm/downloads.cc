#include "swarm/downloads.h"

#include <algorithm>
#include <utility>

namespace weft {

Downloads::Downloads(UnitSet has, const UnitSet& wanted, std::uint64_t seed, SwarmTime now)
    : has_(std::move(has)), wanted_(wanted.units()), taken_(UnitSet::full(wanted.units())), random_(seed) {
  UnitSet lacking = wanted;
  has_.for_each([&](std::uint32_t unit) { lacking.remove(unit); });
  want(lacking, now);
}

void Downloads::want(const UnitSet& units, SwarmTime now) {
  if (taken_.all()) hunger_.start(now);
  units.for_each([&](std::uint32_t unit) {
    const bool lost = has_.remove(unit);
    if (!wanted_.add(unit) && !lost) return;
    taken_.remove(unit);
    ++lacking_;
  });
}

void Downloads::abandon() {
  wanted_ = UnitSet(wanted_.units());
  taken_ = UnitSet::full(wanted_.units());
  lacking_ = 0;
}

void Downloads::meet(SwarmNode node, SwarmTime now) {
  if (partners_.size() < kPartnersMax || partners_.contains(node)) admit(node, now);
}

void Downloads::meet_source(SwarmNode node, SwarmTime now) {
  const auto is_source = [](const auto& one) { return one.second.is_source; };
  const auto sources = static_cast<std::size_t>(std::count_if(partners_.begin(), partners_.end(), is_source));
  if (sources < kSourcesMax || partners_.contains(node)) admit(node, now).is_source = true;
}

bool Downloads::is_source(SwarmNode node) const {
  const auto at = partners_.find(node);
  return at != partners_.end() && at->second.is_source;
}

Downloads::Partner& Downloads::admit(SwarmNode node, SwarmTime now) {
  const auto [at, fresh] = partners_.try_emplace(node);
  if (fresh || std::exchange(at->second.left, false)) at->second.again = now;
  return at->second;
}

void Downloads::drop(SwarmNode node) {
  const auto at = partners_.find(node);
  if (at == partners_.end() || at->second.banned) return;
  at->second.left = true;
  if (at->second.open() == 0) partners_.erase(at);
}

bool Downloads::ban(SwarmNode node) {
  Partner& partner = partners_[node];
  partner.left = false;  // it is kept, so that it stays banned
  return !std::exchange(partner.banned, true);
}

std::optional<NextWant> Downloads::next(SwarmTime now) {
  if (is_done()) return part();
  if (taken_.all()) return std::nullopt;
  const bool hungry = is_hungry(now);
  // Wants that wait at the partners do not say that this node is hungry by now. A partner that holds kWantsOpen of them
  // refuses one more, but learns of the hunger. A partner that was met lately gets its first want here.
  if (hungry && open_ < kWantsOpen + partners_.size())
    for (auto at = partners_.begin(); at != partners_.end(); ++at)
      if (at->second.told != hunger_.spell() && at->second.may_be_asked(true) && at->second.again <= now)
        return ask(at, true);
  if (open_ >= kWantsOpen) return std::nullopt;
  const auto least = least_asked(now);
  if (least == partners_.end()) return std::nullopt;
  return ask(least, hungry);
}

NextWant Downloads::ask(Partners::iterator at, bool hungry) {
  ++open_;
  ++at->second.wants;
  at->second.parted = false;
  if (hungry) at->second.told = hunger_.spell();
  return {at->first, first(), hungry};
}

std::optional<NextWant> Downloads::part() {
  for (auto at = partners_.begin(); at != partners_.end(); ++at) {
    const Partner& partner = at->second;
    if (partner.parted || !partner.is_there() || (partner.wants == 0 && !partner.is_source)) continue;
    const NextWant last = ask(at, false);
    at->second.parted = true;
    at->second.ending = at->second.wants;
    return last;
  }
  return std::nullopt;
}

// Of the partners with the fewest open wants, a random one.
Downloads::Partners::iterator Downloads::least_asked(SwarmTime now) {
  auto best = partners_.end();
  std::size_t equals = 0;
  for (auto at = partners_.begin(); at != partners_.end(); ++at) {
    const Partner& partner = at->second;
    if (!partner.may_be_asked(false) || partner.again > now) continue;
    if (best != partners_.end() && partner.open() > best->second.open()) continue;
    const bool equal = best != partners_.end() && partner.open() == best->second.open();
    equals = equal ? equals + 1 : 1;
    if (!equal || random_.below(equals) == 0) best = at;
  }
  return best;
}

bool Downloads::offered(SwarmNode node, std::optional<std::uint32_t> unit, SwarmTime now) {
  const auto at = partners_.find(node);
  if (at == partners_.end() || at->second.wants == 0) return false;
  Partner& partner = at->second;
  const bool ends = partner.ending > 0;
  if (ends) --partner.ending;
  if (unit && !partner.left && !partner.banned && taken_.add(*unit)) {
    --partner.wants;
    ++partner.reads;
    partner.declined = 0;
    return true;
  }
  if (unit) ++declined_;
  const bool wrong = unit && *unit >= taken_.units();
  const bool at_once = unit ? ++partner.declined <= kDeclinedMax : ends;
  close(node, &Partner::wants, wrong ? now + kAskFailedAgain : at_once ? now : now + kAskAgain);
  return false;
}

void Downloads::unanswered(SwarmNode node, SwarmTime now) {
  const auto at = partners_.find(node);
  if (at != partners_.end() && at->second.ending > 0) --at->second.ending;
  close(node, &Partner::wants, now + kAskFailedAgain);
}

void Downloads::arrived(SwarmNode node, std::uint32_t unit, SwarmTime now) {
  const auto at = partners_.find(node);
  const bool is_partner = at != partners_.end() && !at->second.is_source;
  close(node, &Partner::reads, now);
  if (came(unit) && is_partner) hunger_.feed(now);
}

void Downloads::failed(SwarmNode node, std::uint32_t unit, SwarmTime now, std::chrono::milliseconds pause) {
  if (!close(node, &Partner::reads, now + pause)) return;
  if (wanted_.has(unit) && !has_.has(unit)) taken_.remove(unit);
}

void Downloads::add(std::uint32_t unit) {
  came(unit);
}

// False: the node has no open want, or no open read.
bool Downloads::close(SwarmNode node, std::size_t Partner::*open, SwarmTime again) {
  const auto at = partners_.find(node);
  if (at == partners_.end() || at->second.*open == 0) return false;
  --(at->second.*open);
  --open_;
  at->second.again = std::max(at->second.again, again);
  if (at->second.left && at->second.open() == 0) partners_.erase(at);
  return true;
}

// Returns false for a unit that was here before, or that the version lacks.
bool Downloads::came(std::uint32_t unit) {
  taken_.add(unit);
  if (!has_.add(unit)) return false;
  if (wanted_.has(unit)) --lacking_;
  readers_.erase(unit);
  return true;
}

void Downloads::wait_for(std::uint32_t unit) {
  if (unit < has_.units() && !has_.has(unit)) ++readers_[unit];
}

void Downloads::stop_waiting(std::uint32_t unit) {
  const auto at = readers_.find(unit);
  if (at != readers_.end() && --at->second == 0) readers_.erase(at);
}

std::optional<std::uint32_t> Downloads::first() const {
  for (const auto& [unit, readers] : readers_)
    if (!taken_.has(unit)) return unit;
  return std::nullopt;
}

std::size_t Downloads::partners() const {
  return static_cast<std::size_t>(
      std::count_if(partners_.begin(), partners_.end(), [](const auto& one) { return one.second.is_there(); }));
}

bool Downloads::has_receivers() const {
  return std::any_of(partners_.begin(), partners_.end(),
                     [](const auto& one) { return one.second.is_there() && !one.second.is_source; });
}

bool Downloads::is_hungry(SwarmTime now) const {
  return !taken_.all() && now >= hunger_.begins();
}

bool Downloads::joins_again(SwarmTime now) {
  return !taken_.all() && hunger_.joins_again(now);
}

std::optional<SwarmTime> Downloads::due(SwarmTime now) const {
  if (taken_.all()) return std::nullopt;
  SwarmTime first = hunger_.due();
  for (const auto& [node, partner] : partners_)
    if (partner.may_be_asked(true) && partner.again > now) first = std::min(first, partner.again);
  return first;
}

}  // namespace weft

#include "swarm/downloads.h"

#include <algorithm>
#include <utility>

namespace weft {

Downloads::Downloads(UnitSet has, UnitSet wanted, std::uint64_t seed, SwarmTime now)
    : has_(std::move(has)),
      wanted_(wanted.units()),
      taken_(UnitSet::full(wanted.units())),
      random_(seed),
      last_unit_(now) {
  want(wanted);
}

void Downloads::want(const UnitSet& units) {
  units.for_each([&](std::uint32_t unit) {
    if (!wanted_.add(unit) || has_.has(unit)) return;
    taken_.remove(unit);
    ++lacking_;
  });
}

void Downloads::meet(SwarmNode node, SwarmTime now) {
  const auto [at, fresh] = partners_.try_emplace(node);
  if (fresh) at->second.again = now;
}

void Downloads::drop(SwarmNode node) {
  if (const auto at = partners_.find(node); at != partners_.end()) at->second.dropped = true;
}

std::optional<NextWant> Downloads::next(SwarmTime now) {
  if (taken_.all()) return std::nullopt;
  const bool hungry = is_hungry(now);
  // A want that waits at a partner does not say that this node is hungry by now.
  if (hungry)
    for (auto& [node, partner] : partners_)
      if (!partner.dropped && !partner.knows_hunger && partner.wants != 0 && partner.wants < kWantsOpen)
        return ask(node, partner, true);
  if (open_ >= kWantsOpen) return std::nullopt;
  SwarmNode node = 0;
  Partner* const partner = least_asked(now, node);
  if (partner == nullptr) return std::nullopt;
  return ask(node, *partner, hungry);
}

NextWant Downloads::ask(SwarmNode node, Partner& partner, bool hungry) {
  ++open_;
  ++partner.wants;
  partner.knows_hunger = hungry;
  return {node, first(), hungry};
}

// Of the partners with the fewest open wants, a random one.
Downloads::Partner* Downloads::least_asked(SwarmTime now, SwarmNode& node) {
  Partner* best = nullptr;
  std::size_t equals = 0;
  for (auto& [name, partner] : partners_) {
    const std::size_t open = partner.wants + partner.reads;
    if (partner.dropped || partner.again > now || open >= kWantsOpen) continue;
    const bool equal = best != nullptr && open == best->wants + best->reads;
    if (best != nullptr && !equal && open > best->wants + best->reads) continue;
    equals = equal ? equals + 1 : 1;
    if (equal && random_.below(equals) != 0) continue;
    best = &partner;
    node = name;
  }
  return best;
}

bool Downloads::offered(SwarmNode node, std::optional<std::uint32_t> unit, SwarmTime now) {
  if (!unit || *unit >= taken_.units() || taken_.has(*unit)) {
    if (unit) ++declined_;
    close(node, &Partner::wants, unit ? now : now + kAskAgain);
    return false;
  }
  const auto at = partners_.find(node);
  if (at == partners_.end() || at->second.wants == 0) return false;
  --at->second.wants;
  ++at->second.reads;
  taken_.add(*unit);
  return true;
}

void Downloads::unanswered(SwarmNode node, SwarmTime now) {
  close(node, &Partner::wants, now + kAskFailedAgain);
}

void Downloads::arrived(SwarmNode node, std::uint32_t unit, SwarmTime now) {
  close(node, &Partner::reads, now);
  came(unit, now);
}

void Downloads::failed(SwarmNode node, std::uint32_t unit, SwarmTime now) {
  close(node, &Partner::reads, now + kAskFailedAgain);
  if (wanted_.has(unit) && !has_.has(unit)) taken_.remove(unit);
}

void Downloads::add(std::uint32_t unit, SwarmTime now) {
  taken_.add(unit);
  came(unit, now);
}

void Downloads::close(SwarmNode node, std::size_t Partner::*open, SwarmTime again) {
  const auto at = partners_.find(node);
  if (at == partners_.end() || at->second.*open == 0) return;
  --(at->second.*open);
  --open_;
  at->second.again = std::max(at->second.again, again);
}

void Downloads::came(std::uint32_t unit, SwarmTime now) {
  if (!has_.add(unit)) return;
  if (wanted_.has(unit)) --lacking_;
  readers_.erase(unit);
  usual_gap_ = (usual_gap_ * 7 + (now - last_unit_)) / 8;
  last_unit_ = now;
  join_at_.reset();
  join_after_ = kJoinAgain;
  for (auto& [node, partner] : partners_) partner.knows_hunger = false;
}

void Downloads::wait_for(std::uint32_t unit) {
  if (!has_.has(unit)) ++readers_[unit];
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

SwarmTime Downloads::hungry_at() const {
  return last_unit_ + std::max<std::chrono::nanoseconds>(kHungryAfter, kHungryGaps * usual_gap_);
}

bool Downloads::is_hungry(SwarmTime now) const {
  return !is_done() && now >= hungry_at();
}

bool Downloads::joins_again(SwarmTime now) {
  if (!is_hungry(now)) return false;
  if (!join_at_) join_at_ = hungry_at();
  if (now < *join_at_) return false;
  join_at_ = now + join_after_;
  join_after_ = std::min(join_after_ * 2, kJoinAgainMax);
  return true;
}

std::optional<SwarmTime> Downloads::due(SwarmTime now) const {
  if (is_done()) return std::nullopt;
  SwarmTime first = join_at_.value_or(hungry_at());
  if (open_ < kWantsOpen && !taken_.all())
    for (const auto& [node, partner] : partners_)
      if (!partner.dropped && partner.again > now) first = std::min(first, partner.again);
  return first;
}

}  // namespace weft

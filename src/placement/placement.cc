#include "placement/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include "placement/rendezvous.h"

namespace weft {
namespace {

constexpr std::uint64_t kSegmentsMax = 16;    // of a group
constexpr std::uint64_t kGroupsOfANode = 64;  // so that the last group of the slowest node is a small part of its work

// The groups of each slot, while slots are added one by one.
class Shares {
 public:
  Shares(std::uint64_t groups, std::size_t slots) : groups_(groups) {
    of_slot_.reserve(slots);
    of_slot_.emplace_back(groups);
    std::iota(of_slot_[0].begin(), of_slot_[0].end(), 0U);
  }

  const std::vector<std::vector<std::uint32_t>>& of_slots() const { return of_slot_; }

  // Adds a slot, which takes an even share: from the fullest slots first, and of their groups those of the largest
  // weight(group).
  template <class Weight>
  void add_slot(const Weight& weight) {
    const std::size_t others = of_slot_.size();
    const std::uint64_t share = groups_ / (others + 1), left = groups_ - share;
    std::vector<std::size_t> fullest_first(others);
    std::iota(fullest_first.begin(), fullest_first.end(), std::size_t{0});
    std::ranges::stable_partition(fullest_first,
                                  [&](std::size_t slot) { return of_slot_[slot].size() > groups_ / others; });
    std::vector<std::uint32_t> taken;
    taken.reserve(share);
    for (std::size_t i = 0; i < others; ++i)
      take(of_slot_[fullest_first[i]], left / others + (i < left % others ? 1 : 0), weight, taken);
    of_slot_.push_back(std::move(taken));
  }

 private:
  template <class Weight>
  void take(std::vector<std::uint32_t>& from, std::uint64_t keeps, const Weight& weight,
            std::vector<std::uint32_t>& taken) {
    if (from.size() <= keeps) return;
    weighed_.clear();
    for (const std::uint32_t group : from) weighed_.emplace_back(weight(group), group);
    const auto end = weighed_.begin() + static_cast<std::ptrdiff_t>(from.size() - keeps);
    std::nth_element(weighed_.begin(), end - 1, weighed_.end(), std::greater<>());
    for (auto one = weighed_.begin(); one != end; ++one) taken.push_back(one->second);
    from.clear();
    for (auto one = end; one != weighed_.end(); ++one) from.push_back(one->second);
  }

  const std::uint64_t groups_;
  std::vector<std::vector<std::uint32_t>> of_slot_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> weighed_;
};

std::uint64_t slot_hash(std::size_t slot) {
  return mix(~std::uint64_t{slot});
}

Status check(std::uint64_t groups, const std::vector<std::string>& slots) {
  if (groups > Placement::kGroupsMax)
    return Error{Errc::invalid,
                 fmt::format("placement: expected at most {} groups, got {}", Placement::kGroupsMax, groups)};
  if (slots.size() > Placement::kSlotsMax)
    return Error{Errc::invalid,
                 fmt::format("placement: expected at most {} nodes, got {}", Placement::kSlotsMax, slots.size())};
  std::unordered_set<std::string_view> nodes;
  for (const std::string& node : slots)
    if (!node.empty() && !nodes.insert(node).second)
      return Error{Errc::invalid, fmt::format("placement: node {} has two slots", node)};
  if (nodes.empty()) return Error{Errc::invalid, "placement: expected at least one node, got none"};
  return {};
}

}  // namespace

std::uint64_t group_bytes(std::uint64_t set_bytes, std::size_t nodes) {
  const std::uint64_t segments = set_bytes / kSegmentBytes / kGroupsOfANode / std::max<std::size_t>(nodes, 1);
  return kSegmentBytes * std::clamp<std::uint64_t>(segments, 1, kSegmentsMax);
}

std::vector<std::string> next_slots(std::vector<std::string> slots, std::span<const std::string> nodes) {
  const std::unordered_set<std::string_view> wanted(nodes.begin(), nodes.end());
  for (std::string& slot : slots)
    if (!wanted.contains(slot)) slot.clear();
  const std::unordered_set<std::string> there(slots.begin(), slots.end());
  auto empty = slots.begin();
  std::vector<std::string> more;
  for (const std::string& node : nodes) {
    if (there.contains(node)) continue;
    empty = std::ranges::find(empty, slots.end(), "");
    if (empty == slots.end())
      more.push_back(node);
    else
      *empty = node;
  }
  slots.insert(slots.end(), more.begin(), more.end());
  return slots;
}

Result<Placement> Placement::make(std::uint64_t seed, std::uint64_t groups, std::vector<std::string> slots) {
  WEFT_CHECK(check(groups, slots));
  Placement placement(seed, std::move(slots));
  placement.share(groups);
  placement.fill_in();
  return placement;
}

std::uint64_t Placement::key(std::uint64_t group) const {
  return mix(seed_ ^ mix(group + 1));
}

std::uint64_t Placement::weight(std::uint64_t group, std::size_t slot) const {
  return rendezvous_weight(key(group), slot_hash(slot));
}

void Placement::share(std::uint64_t groups) {
  std::vector<std::uint64_t> keys(groups);
  for (std::uint64_t group = 0; group < groups; ++group) keys[group] = key(group);
  Shares shares(groups, slots_.size());
  for (std::size_t slot = 1; slot < slots_.size(); ++slot)
    shares.add_slot([&](std::uint32_t group) { return rendezvous_weight(keys[group], slot_hash(slot)); });
  slot_of_.resize(groups);
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    for (const std::uint32_t group : shares.of_slots()[slot]) slot_of_[group] = static_cast<std::uint32_t>(slot);
}

// Gives the groups of empty slots to nodes.
void Placement::fill_in() {
  const std::uint64_t nodes = slots_.size() - static_cast<std::uint64_t>(std::ranges::count(slots_, ""));
  const std::uint64_t most = slot_of_.size() * 102 / (100 * nodes) + 1;
  std::vector<std::uint64_t> load(slots_.size());
  for (const std::uint32_t slot : slot_of_) ++load[slot];
  for (std::uint64_t group = 0; group < slot_of_.size(); ++group) {
    if (!slots_[slot_of_[group]].empty()) continue;
    std::pair<std::uint64_t, std::uint32_t> best;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
      if (!slots_[slot].empty() && load[slot] < most) best = std::max(best, {weight(group, slot) | 1U, slot});
    slot_of_[group] = best.second;
    ++load[best.second];
  }
}

std::vector<std::string_view> Placement::order(std::uint64_t group) const {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> weighed;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
    if (!slots_[slot].empty() && slot != slot_of_[group]) weighed.emplace_back(weight(group, slot), slot);
  std::ranges::sort(weighed, std::greater<>());
  std::vector<std::string_view> out{owner(group)};
  for (const auto& [weight, slot] : weighed) out.emplace_back(slots_[slot]);
  return out;
}

std::vector<std::uint64_t> Placement::groups_of(std::string_view node) const {
  std::vector<std::uint64_t> out;
  for (std::uint64_t group = 0; group < slot_of_.size(); ++group)
    if (owner(group) == node) out.push_back(group);
  return out;
}

}  // namespace weft

// Which node of a staged data set holds which of its bytes (placement/placement.cc). The bytes of a set are groups of
// segments, numbered from 0 in the order of the set. Each node of the placement has a slot, and each slot an even share
// of the groups. A placement is a pure function of the seed, the number of groups and the slots, so all who know the
// record of a placement agree, and no node keeps a directory.
//
// The shares of the first slots are made step by step: each further slot takes, from the fullest before it, those
// groups for which its own weight is the largest (rendezvous hashing with bounded loads; V. Mirrokni, M. Thorup and M.
// Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA 2018). A node that joins therefore takes its share and
// moves nothing else. The slot of a node that has left stays, without a node. The others hold its groups, each the one
// of the largest weight that has room. The next node that joins gets this slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kSegmentBytes = 4U << 20U;

// Returns the bytes of a group, 1 to 16 segments: as many as leave each node 64 groups.
std::uint64_t group_bytes(std::uint64_t set_bytes, std::size_t nodes);

// Returns the slots after a change of nodes: a node that stays keeps its slot, a node that leaves empties its slot, and
// those that join, in their order, fill the empty slots before they get new ones.
std::vector<std::string> next_slots(std::vector<std::string> slots, std::span<const std::string> nodes);

class Placement {
 public:
  static constexpr std::uint64_t kGroupsMax = 1U << 22U;  // 16 TiB in groups of 4 MiB
  static constexpr std::size_t kSlotsMax = 4096;

  // A slot without a node is "". Errc::invalid: too many groups or slots, no node at all, or a node twice.
  static Result<Placement> make(std::uint64_t seed, std::uint64_t groups, std::vector<std::string> slots);

  std::uint64_t groups() const { return slot_of_.size(); }
  // `group` is less than groups(). The most loaded node has at most 1.02 times the mean and one group.
  const std::string& owner(std::uint64_t group) const { return slots_[slot_of_[group]]; }
  // Returns all nodes, the owner first: the order in which they stand in for dead ones.
  std::vector<std::string_view> order(std::uint64_t group) const;
  // Returns the groups that the node owns, ascending. None if it has no slot.
  std::vector<std::uint64_t> groups_of(std::string_view node) const;

 private:
  Placement(std::uint64_t seed, std::vector<std::string> slots) : seed_(seed), slots_(std::move(slots)) {}

  void share(std::uint64_t groups);
  void fill_in();
  std::uint64_t key(std::uint64_t group) const;
  std::uint64_t weight(std::uint64_t group, std::size_t slot) const;

  std::uint64_t seed_;
  std::vector<std::string> slots_;
  std::vector<std::uint32_t> slot_of_;  // by group: a slot with a node
};

}  // namespace weft

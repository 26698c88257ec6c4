// A set of the units of one version (swarm/units.h), as its bits travel between nodes. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/result.h"

namespace weft {

class UnitSet {
 public:
  explicit UnitSet(std::uint32_t units = 0) : units_(units), words_((std::size_t{units} + 63) / 64) {}
  static UnitSet full(std::uint32_t units);
  // Errc::invalid: another length than that of `units` units, or bits beyond the last unit.
  static Result<UnitSet> decode(std::span<const std::byte> bytes, std::uint32_t units);
  std::vector<std::byte> encode() const;  // a bit for each unit, the lowest bit of the first byte first

  std::uint32_t units() const { return units_; }  // of the version
  std::uint32_t count() const { return count_; }  // in the set
  bool all() const { return count_ == units_; }
  bool has(std::uint32_t unit) const { return unit < units_ && ((words_[unit / 64] >> (unit % 64)) & 1U) != 0; }
  // They return true if the set changes. A unit that the version lacks changes nothing.
  bool add(std::uint32_t unit);
  bool remove(std::uint32_t unit);
  bool contains(const UnitSet& other) const;  // true if this set has all units of `other`
  // Returns the first unit of this set that `other` lacks.
  std::optional<std::uint32_t> first_not_in(const UnitSet& other) const;
  bool operator==(const UnitSet&) const = default;

  // Calls `visit` with each unit of the set, in order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t word = 0; word < words_.size(); ++word)
      for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
        visit(static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(left))));
  }

 private:
  std::uint64_t word(std::size_t i) const { return i < words_.size() ? words_[i] : 0; }

  std::uint32_t units_;
  std::uint32_t count_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace weft

#include "swarm/unit_set.h"

#include <utility>

namespace weft {

UnitSet UnitSet::full(std::uint32_t units) {
  UnitSet set(units);
  for (std::uint64_t& word : set.words_) word = ~std::uint64_t{0};
  if (units % 64 != 0) set.words_.back() = (std::uint64_t{1} << (units % 64)) - 1;
  set.count_ = units;
  return set;
}

Result<UnitSet> UnitSet::decode(std::span<const std::byte> bytes, std::uint32_t units) {
  if (bytes.size() != (std::size_t{units} + 7) / 8)
    return Error{Errc::invalid, "a set of units has another length than its version"};
  UnitSet set(units);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    set.words_[i / 8] |= std::to_integer<std::uint64_t>(bytes[i]) << (i % 8 * 8);
  if (units % 64 != 0 && (set.words_.back() >> (units % 64)) != 0)
    return Error{Errc::invalid, "a set of units has a unit beyond the last one of its version"};
  for (const std::uint64_t word : set.words_) set.count_ += static_cast<std::uint32_t>(std::popcount(word));
  return set;
}

std::vector<std::byte> UnitSet::encode() const {
  std::vector<std::byte> bytes((std::size_t{units_} + 7) / 8);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((words_[i / 8] >> (i % 8 * 8)) & 0xFFU);
  return bytes;
}

bool UnitSet::add(std::uint32_t unit) {
  if (unit >= units_ || has(unit)) return false;
  words_[unit / 64] |= std::uint64_t{1} << (unit % 64);
  ++count_;
  return true;
}

bool UnitSet::remove(std::uint32_t unit) {
  if (!has(unit)) return false;
  words_[unit / 64] &= ~(std::uint64_t{1} << (unit % 64));
  --count_;
  return true;
}

std::optional<std::uint32_t> UnitSet::first_not_in(const UnitSet& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (const std::uint64_t left = words_[i] & ~other.word(i); left != 0)
      return static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  return std::nullopt;
}

bool UnitSet::contains(const UnitSet& other) const {
  for (std::size_t i = 0; i < other.words_.size(); ++i)
    if ((other.words_[i] & ~word(i)) != 0) return false;
  return true;
}

}  // namespace weft

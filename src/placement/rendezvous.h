// Rendezvous hashing (D. Thaler and C. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998;
// placement/rendezvous.cc). Each node has a weight for each key, and a key belongs to the node with the largest weight.
// All who know the nodes therefore agree, and few keys move if a node joins or leaves. Pure. The weights are no secret
// and no proof: a node that may choose its name can choose what belongs to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"

namespace weft {

// A permutation of all numbers that looks random (the last step of SplitMix64; G. Steele, D. Lea and C. Flood, "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t number) {
  number = (number ^ number >> 30U) * 0xbf58476d1ce4e5b9U;
  number = (number ^ number >> 27U) * 0x94d049bb133111ebU;
  return number ^ number >> 31U;
}

// Both arguments are hashes.
constexpr std::uint64_t rendezvous_weight(std::uint64_t key, std::uint64_t node) {
  return mix(key ^ node);
}

// Returns the nodes to which the key belongs, at most `count_max`, the one with the largest weight first.
std::vector<std::string> rendezvous_nodes(const Digest& key, std::span<const std::string> nodes, std::size_t count_max);

}  // namespace weft

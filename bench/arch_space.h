// Random samples of the two spaces from which EvoStore's artifact draws its models: chains of dense layers, and chains
// with skip connections. Input 32, output 1. Each layer has 31 choices: none, or 16 to 96 units with one of 5
// activations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/model/arch.h"
#include "weft/model/version_content.h"

namespace weft::bench {

struct Space {
  unsigned layers = 10;
  bool skips = false;
};

// Returns sample `number` of the space. With skips, each of up to three earlier outputs is added to a layer's output
// with probability 1/2, through a dense layer of its own. Then comes an activation.
ArchGraph sample(const Space& space, std::uint64_t number);
std::vector<ArchItem> items_of_sample(const Space& space, std::uint64_t number);

}  // namespace weft::bench

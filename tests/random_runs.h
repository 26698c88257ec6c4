// Runs of random steps, each against a model of its own. A failure prints the seed: WEFT_TEST_SEED=<seed> runs it
// again; WEFT_TEST_STEPS sets how long a run is.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "testing.h"

namespace weft::testing {

// A Run is made of a seed, takes a step() as often as told, and ends with finish().
template <class Run>
void run_rounds(std::uint64_t steps) {
  const std::uint64_t seed = test_seed();
  if (const char* text = std::getenv("WEFT_TEST_STEPS")) steps = parse_u64(text).value_or(steps);
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::uint64_t round_seed = seed + round;
    CAPTURE(round_seed);
    MESSAGE("seed ", round_seed);
    Run run(round_seed);
    for (std::uint64_t step = 0; step < steps; ++step) {
      CAPTURE(step);
      run.step();
    }
    run.finish();
  }
}

}  // namespace weft::testing

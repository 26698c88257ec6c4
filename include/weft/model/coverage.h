// The share of the tensors of a file that weft shows (model/coverage.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "weft/model/manifest.h"

namespace weft {

// Sums stop at 2^64 - 1.
struct Coverage {
  std::uint64_t in_tensors = 0;  // bytes of the file that lie in shown tensors, of this file or of another
  std::uint64_t shown = 0;       // bytes of the file's tensors; each tensor counts, also those that share bytes
  std::uint64_t hidden = 0;      // the same of its hidden tensors whose bytes are known
  // The shown bytes ÷ all bytes of tensors; 1 if the file has no tensors.
  double share() const;
};

// By file.
std::vector<Coverage> coverage_of(const Manifest& manifest);

}  // namespace weft

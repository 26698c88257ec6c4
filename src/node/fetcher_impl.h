// What the files of the Fetcher share.
#pragma once

#include "node/fetcher.h"

namespace weft {

// Guarded by Fetcher::mutex_, but for `source`.
struct Fetcher::Source {
  explicit Source(std::shared_ptr<BlobSource> from) : source(std::move(from)) {}
  VerifiedSource source;
  SourceCount count;
  Clock::time_point rests_until{};  // it did not answer a moment ago
};

}  // namespace weft

// Definitions that the files of the Fetcher share.
#pragma once

#include "fetch/fetcher.h"
#include "fetch/source_rate.h"

namespace weft {

// Guarded by Fetcher::mutex_, except `source` and `count.name`.
struct Fetcher::Source {
  explicit Source(std::shared_ptr<BlobSource> from) : source(std::move(from)) {}
  VerifiedSource source;
  SourceCount count;
  SourceRate rate;
  Clock::time_point rests_until{};  // asked last until then, after a silence
};

}  // namespace weft

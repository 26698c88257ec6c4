// The origin: a directory on the site's parallel file system that holds everything durably (man weft-store.5).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "weft/result.h"
#include "weft/source.h"

namespace weft {

struct OriginOptions {
  unsigned threads = 4;  // that read at once, and that may be left behind in calls that hang
};

// Reads from the origin in `path`. The directory need not be there, or answer: it is opened when it is first asked, and
// again while that fails.
std::shared_ptr<BlobSource> origin_source(std::string path, const OriginOptions& options = {});

struct OriginTotals {
  std::uint64_t packs = 0, bytes = 0;  // of packs on its disk
  std::uint64_t manifests = 0, versions = 0;
};
// Of all that nodes have put there. Errc::timed_out when the directory does not answer.
Result<OriginTotals> origin_totals(const std::string& path, std::chrono::milliseconds patience);

}  // namespace weft

// Receives the files of a source over several connections, and verifies them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "drafts/pull_area.h"
#include "pull/pull_source.h"
#include "pull/received_file.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

struct ReceiveOptions {
  // Gives the sink the bytes of a file that this node has already, also wrong ones. Errc::not_found: it has none.
  // Called by any thread. Empty: no file is known.
  std::function<Status(const HubFile& file, const ByteSink& sink)> known;
  unsigned connections = 8;
};

struct ReceivedBytes {
  std::uint64_t bytes = 0;    // that came over the network
  std::uint64_t resumed = 0;  // that an earlier pull had received
  std::uint64_t known = 0;    // that ReceiveOptions::known gave
};

// Receives `files` of a source, sorted by path, into area.files(), and removes whatever else is there. After an error
// the received bytes stay for the next call. `failed`: set by the first error, so that other requests of the source can
// end (HttpReaderOptions::stopped). Errc::corrupt: a file has other bytes than its digest says. Errc::cancelled:
// `progress` is. Other errors: hub_client.h, os/sys.h.
Result<ReceivedBytes> receive_files(PullSource& source, const ReceiveOptions& options, std::span<const HubFile> files,
                                    const PullArea& area, Progress& progress, std::atomic<bool>& failed);

}  // namespace weft

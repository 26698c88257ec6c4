// Copies what another node's pull has received, or copied itself, into the area of this node's pull, which waits for
// the claim. When this node gets the claim, it receives only the rest. The copied bytes are of unknown truth: Receiving
// verifies them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time_source.h"
#include "drafts/pull_area.h"
#include "hub/hub_listing.h"
#include "pull/received_file.h"
#include "weft/cluster/pulled.h"
#include "weft/result.h"

namespace weft {

// One thread. Nothing of it receives into the area meanwhile.
class Following {
 public:
  static constexpr auto kSoon = std::chrono::milliseconds(100);   // until the next round, if a round has copied bytes
  static constexpr auto kLater = std::chrono::milliseconds(500);  // and if it has not
  static constexpr auto kRest = std::chrono::seconds(5);          // and after an error of the other node
  static constexpr std::size_t kQuietMax = 300;                   // files without news that one round asks about
  static constexpr std::size_t kOpenMax = 300;                    // files that are copied at a time
  static constexpr std::uint64_t kFreePart = 20;                  // 1/20 of the disk stays free

  // `key`: of the area. `files`: those that this node wants. `area` and `time` outlive this.
  Following(const PullArea& area, std::string key, std::span<const HubFile> files,
            const TimeSource& time = steady_time());

  // Copies what is new, and returns when it may be called again; at once if it is called before. `stopped` is asked
  // between answers. An error of `from` begins a rest. Errc::no_space, and other errors of os/sys.h: of this node's
  // disk; do not call it again.
  Result<Deadline> step(PulledFiles& from, const std::function<bool()>& stopped);
  // Copies all that there is, as step(), until there is nothing new, `from` fails or `stopped` returns true.
  Status finish(PulledFiles& from, const std::function<bool()>& stopped);

  std::uint64_t copied() const { return copied_; }  // bytes

 private:
  struct File {
    HubFile wanted;
    Digest note;
    bool is_whole = false;                        // here
    std::unique_ptr<ReceivedFile> received = {};  // null: not opened, or whole
  };
  // The other node, in one round.
  struct Giver {
    PulledFiles& from;
    const std::function<bool()>& stopped;
    std::optional<std::chrono::milliseconds> rest = {};  // after an error
    bool is_over() const { return rest || stopped(); }
  };

  Status round(Giver& giver);
  Status follow(File& file, Giver& giver);
  Status copy(File& file, std::uint64_t piece, std::uint32_t got, Giver& giver);
  std::optional<PulledPart> ask(const File& file, std::uint64_t offset, std::uint64_t length, Giver& giver) const;
  Status check_space(const HubFile& wanted) const;
  Status open(File& file);
  void close_whole(File& file);

  const PullArea& area_;
  const std::string key_;
  const TimeSource& time_;
  std::vector<File> files_;
  std::size_t open_ = 0;  // files
  std::uint64_t copied_ = 0;
  Deadline next_{};
};

}  // namespace weft

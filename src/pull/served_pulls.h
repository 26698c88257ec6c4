// Serves to other nodes the bytes that pulls on this node have received, or copied while they wait. A pull is served
// from begin() on, and for kServedAfter after its end: a pull that was killed leaves its area, and the node that takes
// over asks for its bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/time_source.h"
#include "os/safe_path.h"
#include "weft/cluster/pulled.h"
#include "weft/result.h"

namespace weft {

// Any thread. Opens nothing but regular files below PULLS/KEY of a served key (safe_path.h). Any number of nodes may
// ask: kServedReadsMax reads run at once, and another one is refused with Errc::busy.
class ServedPulls final : public PulledFiles {
 public:
  static constexpr auto kServedAfter = std::chrono::hours(1);
  static constexpr std::size_t kServedPullsMax = 1000;  // beyond, the pull that would end first is not served any more
  static constexpr unsigned kServedReadsMax = 2;

  // `pulls`: the directory of the areas, which need not exist. `time` outlives this.
  explicit ServedPulls(const SafePath& pulls, const TimeSource& time = steady_time()) : pulls_(pulls), time_(time) {}

  // Serves the pull of a key until the last of these objects ends, and a while longer. They end before this.
  class Lasting;
  std::unique_ptr<Lasting> begin(const std::string& key);

  // Gives the bytes that the note of the file names, and all bytes of a file without a note. Errc::not_found also: the
  // file has another size.
  Result<PulledPart> read(const PulledAsk& ask) override;

 private:
  struct Served {
    unsigned lasting = 0;
    Deadline until{};  // if none lasts
  };
  void end(const std::string& key);
  bool serves(const std::string& key);
  Result<PulledPart> read_area(const PulledAsk& ask) const;

  const SafePath pulls_;
  const TimeSource& time_;
  std::atomic<unsigned> reads_{0};
  Mutex mutex_;
  std::map<std::string, Served> served_ WEFT_GUARDED_BY(mutex_);  // by key
};

class ServedPulls::Lasting {
 public:
  Lasting(ServedPulls& pulls, std::string key) : pulls_(pulls), key_(std::move(key)) {}
  ~Lasting() { pulls_.end(key_); }
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;

 private:
  ServedPulls& pulls_;
  const std::string key_;
};

}  // namespace weft

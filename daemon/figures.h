// Metrics of the daemon, in Prometheus' text format 0.0.4.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "pace/pace_gate.h"

namespace weft {

// Any thread.
class Figures {
 public:
  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
    std::string suffix = {};  // of the name: "_bucket", "_sum" or "_count" of a histogram
  };
  // Called by each text(). Must be quick, and must not call this object.
  using Read = std::function<std::vector<Sample>()>;
  // Adds a metric; `type` is "counter", "gauge", "histogram" or "summary". Call before the first text().
  void add(std::string name, std::string type, std::string help, Read read);
  void add(std::string name, std::string type, std::string help, std::function<double()> read);

  // Counts a finished request of the control socket in weft_request_duration_seconds and weft_requests_failed_total.
  void request_ended(std::string_view name, std::chrono::nanoseconds took, bool failed);
  std::uint64_t requests() const;

  std::string text() const;

 private:
  static constexpr std::array kBuckets = {0.001, 0.01, 0.1, 1.0, 10.0, 100.0};  // seconds
  struct Requests {
    std::array<std::uint64_t, kBuckets.size()> within{};  // requests that took at most kBuckets[i]
    std::uint64_t count = 0, failed = 0;
    double seconds = 0;
  };
  struct Family {
    std::string name, type, help;
    Read read;
  };
  std::vector<Family> families_;
  mutable std::mutex mutex_;
  std::map<std::string, Requests, std::less<>> requests_;  // guarded by mutex_
};

// Adds the metrics of this process, and weft_build_info. `commit`: of the program.
void add_process_figures(Figures& figures, const std::string& commit);

// Adds the metrics of the bytes and waits of each class of traffic. `gate` outlives `figures`.
void add_pace_figures(Figures& figures, const PaceGate& gate);

// Answers /metrics with the text, and any other path with 404.
HttpReply metrics_reply(const Figures& figures, const HttpRequest& request);

}  // namespace weft

// GET /metrics over HTTP, for Prometheus, on the loopback interface only. One request at a time, and none for longer
// than `patience`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/sys.h"
#include "control/waker.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

class MetricsPort {
 public:
  static Result<std::unique_ptr<MetricsPort>> open(std::uint16_t port, std::function<std::string()> text,
                                                   std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~MetricsPort();
  MetricsPort(const MetricsPort&) = delete;
  MetricsPort& operator=(const MetricsPort&) = delete;

 private:
  MetricsPort(Fd listener, std::function<std::string()> text, std::chrono::milliseconds patience);
  void run();
  void answer(const Fd& client) const;
  void send_all(int client, std::string_view text, Deadline deadline) const;
  bool is_ready(int client, short events, Deadline deadline) const;  // false when this ends, or the time has
  const Fd listener_;
  const std::function<std::string()> text_;
  const std::chrono::milliseconds patience_;  // with a client, for its whole request
  const control::Waker waker_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

// The whole answer to the beginning of a request; "" while its first line is not whole.
std::string http_answer(std::string_view request, const std::function<std::string()>& text);

}  // namespace weft

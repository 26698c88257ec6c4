// GET /metrics over HTTP, for Prometheus, on the loopback interface only. One request at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/sys.h"
#include "control/waker.h"
#include "weft/result.h"

namespace weft {

class MetricsPort {
 public:
  static Result<std::unique_ptr<MetricsPort>> open(std::uint16_t port, std::function<std::string()> text);
  ~MetricsPort();
  MetricsPort(const MetricsPort&) = delete;
  MetricsPort& operator=(const MetricsPort&) = delete;

 private:
  MetricsPort(Fd listener, std::function<std::string()> text);
  void run();
  void answer(const Fd& client) const;
  const Fd listener_;
  const std::function<std::string()> text_;
  const control::Waker waker_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

// The whole answer to the beginning of a request; "" while its first line is not whole.
std::string http_answer(std::string_view request, const std::function<std::string()>& text);

}  // namespace weft

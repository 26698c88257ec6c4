// Serves GET /metrics over HTTP to Prometheus, on the loopback interface only. Serves several clients at once, so that
// an idle one delays no other. Each client is dropped after `patience` of `time`, which outlives this.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/time_source.h"
#include "base/worker.h"
#include "os/bell.h"
#include "os/sys.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

class MetricsPort {
 public:
  static Result<std::unique_ptr<MetricsPort>> open(std::uint16_t port, std::function<std::string()> text,
                                                   std::chrono::milliseconds patience = std::chrono::seconds(5),
                                                   const TimeSource& time = steady_time());

 private:
  // A client that is sending its request, or receiving the answer.
  struct Client {
    Fd socket;
    Deadline deadline;
    std::string request;
    std::string answer;  // unsent rest; "" while the request is incomplete
  };
  MetricsPort(Fd listener, std::function<std::string()> text, std::chrono::milliseconds patience,
              const TimeSource& time);
  Worker::Pause round();
  Worker::Pause accept();            // returns the pause after it
  bool serve(Client& client) const;  // false: the client is done or has closed
  bool receive(Client& client) const;
  static bool send(Client& client);
  const Fd listener_;
  const std::function<std::string()> text_;
  const std::chrono::milliseconds patience_;  // for one client, from accept to the end of the answer
  const TimeSource& time_;
  const Bell bell_;
  std::list<Client> clients_;  // oldest first; used only by the worker
  Worker worker_{"metrics port", Worker::kNoRetry, time_};
};

// Returns the whole answer to a request, of which the first line decides; "" while the first line is incomplete.
std::string http_answer(std::string_view request, const std::function<std::string()>& text);

}  // namespace weft

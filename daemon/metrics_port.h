// GET /metrics over HTTP, for Prometheus, on the loopback interface only. Several clients at once, so that a silent one
// keeps no other waiting; none for longer than `patience`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "os/bell.h"
#include "os/sys.h"
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
  // A client whose request arrives, or whose answer goes out.
  struct Client {
    Fd socket;
    Deadline deadline;
    std::string request;
    std::string answer;  // what is still to be sent; "" while the request is not whole
  };
  MetricsPort(Fd listener, std::function<std::string()> text, std::chrono::milliseconds patience);
  void run();
  void accept();
  bool serve(Client& client) const;  // false: it is done, or gone
  bool receive(Client& client) const;
  static bool send(Client& client);
  const Fd listener_;
  const std::function<std::string()> text_;
  const std::chrono::milliseconds patience_;  // with a client, for its whole request
  const Bell bell_;
  std::atomic<bool> ending_ = false;
  std::list<Client> clients_;  // of the thread, by age
  std::thread thread_;
};

// The whole answer to the beginning of a request; "" while its first line is not whole.
std::string http_answer(std::string_view request, const std::function<std::string()>& text);

}  // namespace weft

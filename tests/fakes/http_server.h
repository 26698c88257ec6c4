// An HTTP server on loopback whose answers a test determines byte for byte, valid or not.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/sys.h"

namespace weft::testing {

class HttpServer {
 public:
  // Called for each request with its path and body, on a thread of its connection. It writes any bytes to `fd`; the
  // connection is closed when it returns. `stopping` becomes true when the server ends.
  using Answer = std::function<void(int fd, const std::string& path, const std::string& body)>;
  explicit HttpServer(Answer answer);
  ~HttpServer();
  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  bool stopping() const { return stopping_; }
  // Request line and fields of each request, in order, and of the last one.
  std::vector<std::string> heads() const;
  std::string last_head() const;

 private:
  void accept_all();
  void serve(int fd);
  const Answer answer_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;  // guarded by mutex_
  std::thread acceptor_;
  std::vector<std::thread> connections_;  // used by the acceptor only
};

void send_text(int fd, const std::string& text);
// Returns a whole response with this status and body. `fields`: more lines of the head, each with its end.
std::string http_answer(int status, const std::string& body, const std::string& fields = {});

}  // namespace weft::testing

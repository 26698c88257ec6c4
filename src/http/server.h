// An HTTP/1.1 server for GET, HEAD and small POST requests, by libmicrohttpd (in the .cc). weftd has no other one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/time_source.h"
#include "base/worker.h"
#include "http/connections.h"
#include "http/message.h"
#include "os/bell.h"
#include "os/sys.h"
#include "weft/result.h"

struct MHD_Daemon;

namespace weft {

// Each connection has a thread, so a handler may wait: for bytes that another node sends, or for a download. A pool of
// threads with suspended connections would need each of these waits as a callback. libmicrohttpd would also send files
// in pieces of 128 KiB, so that the connections of a thread take turns; a thread with one connection sends 2 MiB at
// once. `connections_max` bounds the threads.
//
// The server bounds its clients:
// - A client has the patience of the options for its request, and for each limits::kHttpBytesPerSecondMin * patience
//   bytes of an answer. Then the server ends the connection, at the latest one patience later.
// - While the server is full, further clients wait in the kernel. The server then ends the connection that has waited
//   longest for a request, so that idle clients delay no other client for long. It also ends each connection after the
//   answer.
// - Request line and header fields fit in limits::kHttpMemory; larger ones get 414 or 431. A GET or HEAD with a body
//   and a POST with a larger body than the options allow get 413, a POST without Content-Length 411, another method
//   405, and a path or arguments that cannot be decoded 400. The handler sees none of these requests.
class HttpServer {
 public:
  // Called for each request on a thread of its connection, so several at once. Must not throw. May wait for any time if
  // it asks cancelled() of the request meanwhile.
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  struct Options {
    std::string address = "127.0.0.1";  // of the interface, in digits; "0.0.0.0" and "::" are all interfaces
    std::uint16_t port = 0;             // 0: a free one
    std::size_t connections_max = 64;
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    std::size_t body_max = 0;   // bytes of the body of a POST; 0: no POST
    std::string name = "http";  // of the port, in messages
    // PEM. With both the server speaks HTTPS alone; with neither HTTP. libmicrohttpd needs GnuTLS for it.
    std::string certificate{}, private_key{};
  };

  // Serves until the object is destroyed. Errc::invalid: the address; else why the system refused the port. `time`
  // outlives the server; it is the clock of the patience.
  static Result<std::unique_ptr<HttpServer>> open(Options options, Handler handler,
                                                  const TimeSource& time = steady_time());
  // Ends all connections and waits for the handlers, whose cancelled() is true from now on.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }
  HttpCounts counts() const { return connections_.counts(); }

 private:
  struct Library;  // the functions that libmicrohttpd calls, and those that call it for a connection
  HttpServer(Options options, Handler handler, Fd listener, std::uint16_t port, const TimeSource& time);
  Status start();
  Worker::Pause round();
  Worker::Pause accept();  // returns the pause after it
  HttpReply reply_to(HttpRequest request, std::string_view raw_path, int socket);

  const Options options_;
  const Handler handler_;
  const Fd listener_;
  const std::uint16_t port_;
  const Bell bell_;  // rings when a connection has ended
  HttpConnections connections_;
  RareLines rare_;
  std::atomic<bool> is_ending_ = false;
  bool is_crowded_ = false;        // a client waits for room; used only by the worker
  MHD_Daemon* library_ = nullptr;  // set before the worker starts
  Worker worker_;
};

}  // namespace weft

// The connections of an HTTP server: which of them wait for a request, and which have to end. The sockets belong to
// libmicrohttpd, which reports the end of a connection before it closes the socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "base/time_source.h"

namespace weft {

// Of a server since its start.
struct HttpCounts {
  std::size_t connections = 0;  // now
  std::uint64_t slow = 0;       // connections that were ended because their time was over
  std::uint64_t crowded = 0;    // connections that were ended for a new client
  std::uint64_t refused = 0;    // connections that were closed at once, for lack of memory or descriptors
  std::uint64_t bytes = 0;      // of answers and their heads, as given to TCP
};

// Any thread. A connection is named by its socket.
class HttpConnections {
 public:
  // `patience`: for a request, from the accept or the previous answer to the end of its header, and for each
  // limits::kHttpBytesPerSecondMin * `patience` bytes of an answer. `time` outlives this.
  HttpConnections(std::size_t max, std::chrono::milliseconds patience, const TimeSource& time)
      : max_(max), patience_(patience), time_(time) {}

  void accepted(int socket);   // it goes to libmicrohttpd
  void started(int socket);    // libmicrohttpd serves it: its client may send a request
  void answering(int socket);  // its handler runs, for any time
  void sending(int socket);    // the answer is about to be sent
  void waiting(int socket);    // the answer needs bytes that its handler reads now: the time of the client stands still
  void resumed(int socket);    // the handler has read them: the time of the client goes on
  void answered(int socket);   // the client may send the next request
  void ended(int socket);
  void refused(int socket);  // libmicrohttpd has closed the accepted socket instead of serving it
  bool is_full() const;
  HttpCounts counts() const;

  // Hangs up on the connections whose time is over. `is_crowded`: a client waits to be accepted. If the server is full,
  // then also on the connection that has waited longest for a request. Returns how long the caller may wait before it
  // calls again; negative: without a limit.
  std::chrono::milliseconds tend(bool is_crowded);

 private:
  enum class State : unsigned char { accepted, receiving, answering, sending };
  struct Connection {
    State state = State::accepted;
    Deadline since;                  // begin of the state, or of the last part of an answer; moved by waits for bytes
    std::uint64_t acknowledged = 0;  // bytes at `since`, while the answer is sent
    bool is_hung_up = false;
    Deadline waiting = {};  // begin of the last wait for bytes
  };
  void enter(int socket, State state);
  void check(int socket, Connection& connection, Deadline now) WEFT_REQUIRES(mutex_);
  bool takes_enough(int socket, Connection& connection) const;
  void make_room(Deadline now) WEFT_REQUIRES(mutex_);
  static void end(int socket, Connection& connection);
  std::chrono::milliseconds pause(Deadline now, bool is_crowded) const WEFT_REQUIRES(mutex_);

  const std::size_t max_;
  const std::chrono::milliseconds patience_;
  const TimeSource& time_;
  mutable Mutex mutex_;
  std::map<int, Connection> connections_ WEFT_GUARDED_BY(mutex_);
  HttpCounts ended_ WEFT_GUARDED_BY(mutex_);  // `bytes`: of connections that have ended
};

}  // namespace weft

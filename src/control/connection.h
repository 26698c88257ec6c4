// A client's connection, in the daemon. One thread at a time receives; any thread sends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/call.h"
#include "control/message_reader.h"
#include "control/poller.h"
#include "control/send_queue.h"
#include "os/unix_socket.h"

namespace weft::control {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  // `name` identifies the connection in the poller's events; the caller adds it to the poller. `share` is the user's
  // share for this connection, held as long as it lives.
  Connection(Fd socket, PeerCredentials peer, std::shared_ptr<void> share, std::shared_ptr<const Poller> poller,
             std::uint64_t name)
      : share_(std::move(share)),
        socket_(std::move(socket)),
        peer_(std::move(peer)),
        poller_(std::move(poller)),
        name_(name) {}

  int fd() const { return socket_.get(); }
  std::uint64_t name() const { return name_; }
  const PeerCredentials& peer() const { return peer_; }

  // Only for the thread that got the poller's event:
  // Passes each received message to `take`. Returns an Error, once, when the connection is over.
  Status receive(const std::function<Status(Message)>& take);
  // Adds a call in flight. Errc::exists: a call in flight has this id. Errc::busy: too many calls.
  Status add(std::uint64_t id, const std::shared_ptr<Call>& call);
  std::shared_ptr<Call> find(std::uint64_t id);  // null if no call in flight has this id
  Status flush();
  // Asks the poller for the next event: bytes to receive, or space for unsent bytes.
  void arm();
  // Cancels the calls in flight. The socket closes with the last reference.
  void close();

  // Any thread:
  void cancel_all();
  void forget(std::uint64_t id);
  // Sends a frame, or queues the part that does not fit into the socket. Ends the connection if the queue exceeds
  // limits::kControlQueueMax: the client does not read.
  void send(std::string frame, std::vector<Fd> fds);
  bool keeps_up();  // false while bytes are queued, or after the end
  // Returns the arrival time of the first byte of an incomplete message; nothing if there is none.
  std::optional<Clock::time_point> part_since();
  // Shuts the socket down: the next receive() returns an error.
  void break_off();

 private:
  void end();  // the caller holds mutex_
  Status receive_now(const std::function<Status(Message)>& take);

  const std::shared_ptr<void> share_;
  const Fd socket_;
  const PeerCredentials peer_;
  const std::shared_ptr<const Poller> poller_;
  const std::uint64_t name_;
  std::mutex receiving_;  // locked before mutex_
  MessageReader reader_;  // guarded by receiving_
  bool over_ = false;     // guarded by receiving_
  std::mutex mutex_;
  SendQueue queue_;                                         // guarded by mutex_
  bool closed_ = false;                                     // guarded by mutex_
  std::optional<Clock::time_point> part_since_;             // guarded by mutex_
  std::map<std::uint64_t, std::weak_ptr<Call>> in_flight_;  // guarded by mutex_
};

}  // namespace weft::control

// One connection as the daemon has it. One thread at a time receives; any thread sends.
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
  // The poller tells of it by this name, once it was added there. `share` is what its user holds as long as it lives.
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

  // Who was told of it by the poller.
  // Hands what has arrived to `take`, message by message. An Error, once: the connection is over.
  Status receive(const std::function<Status(Message)>& take);
  // Errc::exists for the id of one that is in flight, Errc::busy for too many.
  Status add(std::uint64_t id, const std::shared_ptr<Call>& call);
  std::shared_ptr<Call> find(std::uint64_t id);  // null: not in flight (any more)
  Status flush();
  // Somebody is told of it again: when there is something to receive, or room for what has to be sent.
  void arm();
  // Cancels what is in flight. The socket closes with the last reference.
  void close();

  // Any thread.
  void cancel_all();
  void forget(std::uint64_t id);
  // What the socket does not take at once is sent when it does. Above limits::kControlQueueMax the
  // connection is broken off: nobody reads there.
  void send(std::string frame, std::vector<Fd> fds);
  bool keeps_up();
  // When the message began of which a part has arrived; nothing when there is none.
  std::optional<Clock::time_point> part_since();
  // Ends it: the thread that is told of it next sees the end.
  void break_off();

 private:
  void end();  // the caller holds mutex_
  Status receive_now(const std::function<Status(Message)>& take);

  const std::shared_ptr<void> share_;
  const Fd socket_;
  const PeerCredentials peer_;
  const std::shared_ptr<const Poller> poller_;
  const std::uint64_t name_;
  std::mutex receiving_;  // before mutex_
  MessageReader reader_;  // guarded by receiving_
  bool over_ = false;     // guarded by receiving_
  std::mutex mutex_;
  SendQueue queue_;                                         // guarded by mutex_
  bool closed_ = false;                                     // guarded by mutex_
  std::optional<Clock::time_point> part_since_;             // guarded by mutex_
  std::map<std::uint64_t, std::weak_ptr<Call>> in_flight_;  // guarded by mutex_
};

}  // namespace weft::control

// One connection as the daemon has it. One thread receives; any thread sends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/unix_socket.h"
#include "control/call.h"
#include "control/message_reader.h"
#include "control/send_queue.h"
#include "control/waker.h"

namespace weft::control {

class Connection {
 public:
  Connection(Fd socket, PeerCredentials peer, std::shared_ptr<const Waker> waker)
      : socket_(std::move(socket)), peer_(std::move(peer)), waker_(std::move(waker)) {}

  int fd() const { return socket_.get(); }
  const PeerCredentials& peer() const { return peer_; }

  // The receiving thread.
  // Hands what has arrived to `take`, message by message. An Error: the connection is over.
  Status receive(const std::function<Status(Message)>& take);
  // Errc::exists for the id of one that is in flight, Errc::busy for too many.
  Status add(std::uint64_t id, const std::shared_ptr<Call>& call);
  std::shared_ptr<Call> find(std::uint64_t id);  // null: not in flight (any more)
  bool has_to_send();
  Status flush();
  // Cancels what is in flight. The socket closes with the last reference.
  void close();

  // Any thread.
  void cancel_all();
  void forget(std::uint64_t id);
  // What the socket does not take at once is sent by the receiving thread. Above limits::kControlQueueMax the
  // connection is broken off: nobody reads there.
  void send(std::string frame, std::vector<Fd> fds);
  bool keeps_up();

 private:
  const Fd socket_;
  const PeerCredentials peer_;
  const std::shared_ptr<const Waker> waker_;
  MessageReader reader_;
  std::mutex mutex_;
  SendQueue queue_;                                         // guarded by mutex_
  bool closed_ = false;                                     // guarded by mutex_
  std::map<std::uint64_t, std::weak_ptr<Call>> in_flight_;  // guarded by mutex_
};

}  // namespace weft::control

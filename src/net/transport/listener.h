// The listening endpoint of a node. It has a fabric object of its own: with libfabric's net, a thread that waits for
// callers on a shared object would wake up for all traffic.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "net/transport/domain.h"

namespace weft::net {

class Listener {
 public:
  // Listens at the address of `info`. The listener's thread runs `called` when take() has a new caller.
  static Result<std::unique_ptr<Listener>> open(const fi_info& info, std::function<void()> called);
  explicit Listener(std::function<void()> called) : called_(std::move(called)) {}
  ~Listener();

  const EndpointAddress& address() const { return address_; }
  // Takes the waiting callers. Each info makes the endpoint that accepts its caller. Any thread.
  std::vector<InfoPtr> take();
  void reject(const fi_info& caller);

 private:
  Status start(const fi_info& info);
  void run();
  void receive(InfoPtr caller);

  const std::function<void()> called_;
  FidPtr<fid_fabric> fabric_;
  FidPtr<fid_eq> events_;
  FidPtr<fid_pep> endpoint_;
  EndpointAddress address_;
  std::mutex mutex_;
  std::vector<InfoPtr> waiting_;  // guarded by mutex_
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace weft::net

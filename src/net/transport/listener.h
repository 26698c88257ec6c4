// Where others connect to. It has a fabric object of its own: with libfabric's net, waiting for callers would otherwise
// wake up for all traffic.
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
  // Listens at the address of `info`; `called` is run, on a thread of the listener's, when take() has something.
  static Result<std::unique_ptr<Listener>> open(const fi_info& info, std::function<void()> called);
  explicit Listener(std::function<void()> called) : called_(std::move(called)) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const EndpointAddress& address() const { return address_; }
  // Callers that wait: what an endpoint is made of that accepts one. Any thread.
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

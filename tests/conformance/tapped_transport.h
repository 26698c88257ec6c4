// A transport whose outgoing messages a test can record or drop.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "weft/cluster/transport.h"

namespace weft::conformance {

class TappedTransport : public Transport {
 public:
  // Called for each outgoing message. Returns how often it is sent: 0 drops it, as a lost connection would; 2 repeats
  // it, as an attacker could. Any thread.
  using Tap = std::function<int(std::span<const std::byte> message)>;
  TappedTransport(std::unique_ptr<Transport> below, Tap tap) : below_(std::move(below)), tap_(std::move(tap)) {}
  ~TappedTransport() override { end(); }

  const std::string& provider() const override { return below_->provider(); }
  const EndpointAddress& address() const override { return below_->address(); }
  TransportCounters counters() const override { return below_->counters(); }
  std::uint64_t pinned_bytes() const override { return below_->pinned_bytes(); }
  Result<PeerId> add_peer(std::span<const std::byte> address) override { return below_->add_peer(address); }
  void remove_peer(PeerId peer) override { below_->remove_peer(peer); }
  std::optional<std::uint64_t> ends(PeerId peer) const override { return below_->ends(peer); }
  std::uint64_t failures(PeerId peer) const override { return below_->failures(peer); }
  Status send(PeerId peer, std::span<const std::byte> message) override {
    Status sent;
    for (int times = tap_(message); times > 0 && sent.ok(); --times) sent = below_->send(peer, message);
    return sent;
  }
  bool after_receiving(std::function<void()> job) override { return below_->after_receiving(std::move(job)); }
  Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) override {
    return below_->open_window(memory);
  }
  Result<std::shared_ptr<Landing>> open_landing(std::span<std::byte> memory,
                                                std::shared_ptr<const void> owner) override {
    return below_->open_landing(memory, std::move(owner));
  }
  Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                            std::shared_ptr<Landing> landing, std::size_t at,
                                            std::size_t length) override {
    return below_->read(peer, window, offset, std::move(landing), at, length);
  }

 protected:
  // Ends the transport below, whose threads call this object until then. A derived class calls it in its destructor:
  // there the object is still whole.
  void end() {
    delete below_.get();
    static_cast<void>(below_.release());
  }

 private:
  std::unique_ptr<Transport> below_;
  Tap tap_;
};

}  // namespace weft::conformance

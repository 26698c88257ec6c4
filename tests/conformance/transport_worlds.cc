#include "transport_worlds.h"

#include <doctest/doctest.h>

#include "fakes/twin_transport.h"
#include "pinning_provider.h"

namespace weft::conformance {
namespace {

class TwinWorld final : public TransportWorld {
 public:
  std::string name() const override { return "twin"; }
  std::unique_ptr<Transport> open(Transport::Receiver receiver) override { return network_.open(std::move(receiver)); }

 private:
  net::TwinNetwork network_;
};

class FabricWorld final : public TransportWorld {
 public:
  explicit FabricWorld(std::string provider) : provider_(std::move(provider)) {}
  std::string name() const override { return provider_; }
  std::unique_ptr<Transport> open(Transport::Receiver receiver) override {
    TransportOptions options;
    options.provider = provider_;
    options.receiver = std::move(receiver);
    auto opened = open_fabric_transport(options);
    if (!opened.ok()) FAIL(opened.error().message);
    return std::move(*opened);
  }

 private:
  std::string provider_;
};

class PinningWorld final : public TransportWorld {
 public:
  ~PinningWorld() override { CHECK(endpoints_closed_too_early() == 0); }
  std::string name() const override { return "net as hardware"; }
  std::unique_ptr<Transport> open(Transport::Receiver receiver) override {
    auto opened = open_pinning_transport(std::move(receiver));
    if (!opened.ok()) FAIL(opened.error().message);
    return std::move(*opened);
  }
};

}  // namespace

std::vector<std::unique_ptr<TransportWorld>> transport_worlds() {
  std::vector<std::unique_ptr<TransportWorld>> worlds;
  worlds.push_back(std::make_unique<TwinWorld>());
  for (const char* provider : {"net", "tcp"}) worlds.push_back(std::make_unique<FabricWorld>(provider));
  worlds.push_back(std::make_unique<PinningWorld>());
  return worlds;
}

}  // namespace weft::conformance

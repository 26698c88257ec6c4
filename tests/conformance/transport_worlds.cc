#include "transport_worlds.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "fakes/twin_transport.h"
#include "net/transport/provider.h"
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
    if (const char* host = std::getenv("WEFT_TEST_HOST")) options.host = host;
    options.receiver = std::move(receiver);
    auto opened = open_fabric_transport(options);
    if (!opened.ok()) FAIL(opened.error().message);
    return std::move(*opened);
  }
  bool makes_keys() const override { return !net::is_hardware(provider_); }

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

std::string best_provider() {
  const char* const provider = std::getenv("WEFT_TEST_PROVIDER");
  return provider == nullptr ? "net" : provider;
}

std::vector<std::unique_ptr<TransportWorld>> transport_worlds() {
  std::vector<std::unique_ptr<TransportWorld>> worlds;
  if (const char* provider = std::getenv("WEFT_TEST_PROVIDER")) {
    worlds.push_back(std::make_unique<FabricWorld>(provider));
    return worlds;
  }
  worlds.push_back(std::make_unique<TwinWorld>());
  for (const char* provider : {"net", "tcp"}) worlds.push_back(std::make_unique<FabricWorld>(provider));
  worlds.push_back(std::make_unique<PinningWorld>());
  return worlds;
}

}  // namespace weft::conformance

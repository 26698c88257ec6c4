#include "transport_worlds.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "fakes/tcp_providers.h"
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
    return open_over(provider_, std::move(receiver));
  }
  bool makes_keys() const override { return is_over_tcp(provider_); }

 private:
  std::string provider_;
};

class PinningWorld final : public TransportWorld {
 public:
  ~PinningWorld() override { CHECK(endpoints_closed_too_early() == 0); }
  std::string name() const override { return "as hardware"; }
  std::unique_ptr<Transport> open(Transport::Receiver receiver) override {
    auto opened = open_pinning_transport(std::move(receiver));
    if (!opened.ok()) FAIL(opened.error().message);
    return std::move(*opened);
  }
};

}  // namespace

std::string best_provider() {
  return providers_with_connections().front();
}

std::vector<std::string> providers_with_connections() {
  if (const char* const provider = std::getenv("WEFT_TEST_PROVIDER")) return {provider};
  return testing::tcp_providers_with_connections();
}

std::string test_host() {
  const char* const host = std::getenv("WEFT_TEST_HOST");
  return host == nullptr ? "127.0.0.1" : host;
}

std::unique_ptr<Transport> open_over(const std::string& provider, Transport::Receiver receiver) {
  TransportOptions options;
  options.provider = provider;
  options.host = test_host();
  options.receiver = std::move(receiver);
  auto opened = open_fabric_transport(options);
  if (!opened.ok()) FAIL(opened.error().message);
  return std::move(*opened);
}

std::vector<std::unique_ptr<TransportWorld>> transport_worlds() {
  std::vector<std::unique_ptr<TransportWorld>> worlds;
  const bool all = std::getenv("WEFT_TEST_PROVIDER") == nullptr;
  if (all) worlds.push_back(std::make_unique<TwinWorld>());
  for (const std::string& provider : providers_with_connections())
    worlds.push_back(std::make_unique<FabricWorld>(provider));
  if (all) worlds.push_back(std::make_unique<PinningWorld>());
  return worlds;
}

}  // namespace weft::conformance

// The registry implementations, each with a store of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fakes/etcd_process.h"
#include "testing.h"
#include "weft/cluster/registry.h"
#include "weft/store/cluster_store.h"

namespace weft::conformance {

// A store and its registry, as in weftd. Contents are numbers (unit/store/index_support.h).
class RegistryNode {
 public:
  virtual ~RegistryNode() = default;
  virtual Store& store() = 0;
  virtual Registry& registry() = 0;
};

struct RegistryWorld {
  std::string name;
  std::function<std::unique_ptr<RegistryNode>()> node;  // makes a node with an empty registry
};
std::vector<RegistryWorld> registry_worlds();

// A node of a cluster with its own etcd. A test may destroy and reopen it.
class ClusterNode final : public RegistryNode {
 public:
  // Opens the store in `directory`, or creates it. With `wait`, returns once the node is connected.
  ClusterNode(const std::string& directory, EtcdOptions options, bool wait = true,
              std::chrono::seconds lease = std::chrono::seconds(2));
  ~ClusterNode() override;
  Store& store() override { return *store_; }
  Registry& registry() override { return *registry_; }
  bool wait_connected(bool connected = true);
  unsigned refusals() const { return refusals_; }  // calls of ClusterOptions::refused

 private:
  std::atomic<unsigned> refusals_ = 0;
  std::unique_ptr<ClusterStore> store_;
  std::unique_ptr<Registry> registry_;
};

EtcdOptions etcd_options(const testing::EtcdProcess& etcd, const std::string& cluster = "main");

// Imports one file of these contents and publishes it.
Result<PublishOutcome> publish(RegistryNode& node, const std::string& model, const std::vector<unsigned>& contents,
                               PublishRequest request = {});
inline Status remove_version(Registry& registry, const std::string& model, std::uint64_t number) {
  const VersionName version{model, number};
  WEFT_CHECK(registry.remove_versions({&version, 1}, Tagged::removed));
  return {};
}
// Returns the live versions and tags as text, in order: "a@1 a@2 a:best=2".
std::string names_of(Store& store);
// Polls until the condition holds. False if it does not within 20 s.
bool eventually(const std::function<bool()>& holds);

}  // namespace weft::conformance

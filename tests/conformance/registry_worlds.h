// The registries that there are, each with a store of its own behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fakes/etcd_process.h"
#include "testing.h"
#include "weft/cluster_store.h"
#include "weft/registry.h"

namespace weft::conformance {

// A store and its registry, as weftd has them. Contents are numbers (unit/store/index_support.h).
class RegistryNode {
 public:
  virtual ~RegistryNode() = default;
  virtual Store& store() = 0;
  virtual Registry& registry() = 0;
};

struct RegistryWorld {
  std::string name;
  std::function<std::unique_ptr<RegistryNode>()> node;  // of an empty registry
};
std::vector<RegistryWorld> registry_worlds();

// A cluster of an etcd of its own, and nodes that come and go.
class ClusterNode final : public RegistryNode {
 public:
  // Over the store in `directory`, which is made where there is none. Waits until it is connected, unless told not to.
  ClusterNode(const std::string& directory, EtcdOptions options, bool wait = true);
  ~ClusterNode() override;
  Store& store() override { return *store_; }
  Registry& registry() override { return *registry_; }
  bool wait_connected(bool connected = true);

 private:
  std::unique_ptr<ClusterStore> store_;
  std::unique_ptr<Registry> registry_;
};

EtcdOptions etcd_options(const testing::EtcdProcess& etcd, const std::string& cluster = "main");

// As Import and Registry::publish: one file of these contents, published.
Result<PublishOutcome> publish(RegistryNode& node, const std::string& model, const std::vector<unsigned>& contents,
                               PublishRequest request = {});
// Live versions and tags as text, in order: "a@1 a@2 a:best=2".
std::string names_of(Store& store);
// Polls until it holds; false when it does not within a generous time.
bool eventually(const std::function<bool()>& holds);

}  // namespace weft::conformance

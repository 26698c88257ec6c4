#include "registry_worlds.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "../unit/store/index_support.h"
#include "os/sys.h"

namespace weft::conformance {
namespace {

using testing::EtcdProcess;
using testing::TempDir;
constexpr auto kPatience = std::chrono::seconds(20);

template <class T>
T need(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

class LocalNode final : public RegistryNode {
 public:
  LocalNode()
      : store_(need(ClusterStore::open(made_.path, testing::write_options()))),
        registry_(local_registry(*store_, store_->memory())) {}
  Store& store() override { return *store_; }
  Registry& registry() override { return *registry_; }

 private:
  testing::TestStore made_;
  std::unique_ptr<ClusterStore> store_;
  std::unique_ptr<Registry> registry_;
};

EtcdProcess& shared_etcd() {
  static EtcdProcess etcd;
  return etcd;
}

// A node alone in its cluster.
class LoneNode final : public RegistryNode {
 public:
  LoneNode() : node_(dir_ / "store", etcd_options(shared_etcd(), "lone" + std::to_string(++count_))) {}
  Store& store() override { return node_.store(); }
  Registry& registry() override { return node_.registry(); }

 private:
  static inline int count_ = 0;
  TempDir dir_;
  ClusterNode node_;
};

}  // namespace

std::vector<RegistryWorld> registry_worlds() {
  return {{"store", [] { return std::make_unique<LocalNode>(); }},
          {"etcd", []() -> std::unique_ptr<RegistryNode> { return std::make_unique<LoneNode>(); }}};
}

EtcdOptions etcd_options(const EtcdProcess& etcd, const std::string& cluster) {
  EtcdOptions options;
  options.endpoints = {etcd.endpoint()};
  options.cluster = cluster;
  return options;
}

ClusterNode::ClusterNode(const std::string& directory, EtcdOptions options, bool wait, std::chrono::seconds lease) {
  Status created = Store::create(directory, {});
  if (!created.ok() && created.error().code != Errc::exists) throw std::runtime_error(created.error().message);
  store_ = need(ClusterStore::open(directory, testing::write_options()));
  ClusterOptions cluster;
  cluster.etcd = std::move(options);
  cluster.self.name = directory;
  cluster.self.key_proof = "proof of " + directory;
  cluster.lease = lease;
  cluster.refused = [this](const Error&) { ++refusals_; };
  registry_ = need(cluster_registry(*store_, store_->mirror(), std::move(cluster)));
  if (wait && !wait_connected()) throw std::runtime_error("not connected: " + registry_->status().trouble);
}

ClusterNode::~ClusterNode() = default;

bool ClusterNode::wait_connected(bool connected) {
  return eventually([&] { return registry_->status().connected == connected; });
}

Result<PublishOutcome> publish(RegistryNode& node, const std::string& model, const std::vector<unsigned>& contents,
                               PublishRequest request) {
  WEFT_TRY(std::unique_ptr<Import> import, node.store().begin_import(Durability::local));
  TempDir dir;
  std::vector<Range> ranges;
  std::string bytes;
  for (unsigned content : contents) {
    auto some = testing::content_bytes(content);
    ranges.push_back({bytes.size(), some.size()});
    bytes += testing::as_text(some);
  }
  testing::write_file(dir / "file", bytes);
  WEFT_TRY(Fd fd, open_file(dir / "file", O_RDONLY));
  WEFT_CHECK(import->add(fd.get(), "file", ranges, no_progress()));
  request.model = model;
  request.manifest = testing::manifest_of({contents});
  request.content = testing::make_content({contents});
  return node.registry().publish(*import, request);
}

std::string names_of(Store& store) {
  std::string out;
  auto snapshot = need(store.snapshot());
  auto models = need(snapshot->models()).rows;
  for (const ModelRow& model : models) {
    auto versions = need(snapshot->versions(model.id)).rows;
    for (const VersionRow& row : versions)
      if (!row.removed) out += spec_of(row.model_name, row.number) + " ";
    auto tags = need(snapshot->tags(model.id)).rows;
    for (const TagRow& tag : tags) out += model.name + ":" + tag.name + "=" + std::to_string(tag.number) + " ";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

bool eventually(const std::function<bool()>& holds) {
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace weft::conformance

#include "cluster_support.h"

#include <stdexcept>

#include "base/sha256.h"

namespace weft::testing {

MirroredVersion record(std::string_view model, std::uint64_t number, const Files& files) {
  VersionContent content = make_content(files);
  MirroredVersion change;
  VersionRow& version = change.version;
  version.model_name = model;
  version.number = number;
  version.manifest = sha256(manifest_of(files));
  version.time_ns = 1'000 + number;
  version.logical_bytes = content.logical_bytes;
  version.message = "by the registry";
  version.tensors = content.views.size();
  for (const auto& view : content.views) version.tensor_bytes += view.key.content.length;
  version.publisher = kElsewhere;
  change.tree_nodes = content.tree_nodes;
  change.tree_layout = content.tree_layout;
  return change;
}

std::vector<std::string> mirror(ClusterStore& store, const std::vector<MirrorChange>& changes, std::uint64_t revision) {
  auto outcome = store.mirror(changes, revision);
  if (!outcome.ok()) throw std::runtime_error(outcome.error().message);
  return outcome->problems;
}

Status adopt(ClusterStore& store, std::string_view model, std::uint64_t number, const Files& files) {
  return store.adopt(std::vector<Adoption>{{std::string(model), number, manifest_of(files)}});
}

TestCluster::TestCluster() : path(made.path) {
  open();
  Status status = store->join({"test", std::string(kHere)});
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

void TestCluster::open(CommitHooks hooks) {
  auto opened = StoreImpl::open_as_daemon(path, write_options(), std::move(hooks));
  if (!opened.ok()) throw std::runtime_error(opened.error().message);
  store = std::move(opened).value();
}

}  // namespace weft::testing

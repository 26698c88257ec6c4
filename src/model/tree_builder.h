// Builds a VersionTree. The order of its add_…() calls is the order of node numbers that weft/model/tree.h promises.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/layer_plan.h"
#include "model/tree_scopes.h"
#include "weft/model/tree.h"

namespace weft {

// Call build() once.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::shared_ptr<const Manifest> manifest);
  Result<std::shared_ptr<const VersionTree>> build();

 private:
  const Manifest& manifest() const { return *tree_->manifest_; }
  std::uint32_t add(NodeKind kind, std::uint32_t parent, std::string name);
  void add_view(TensorRef ref, std::uint32_t parent, std::string_view name);
  class Directories;
  void add_published();
  void add_tensors();
  void add_scope_tensors(const Scope& scope, std::uint32_t dir);
  Status add_layers();
  Status add_scope_layers(const Scope& scope, std::uint32_t dir);
  void add_layer(PlannedLayer& planned, std::uint32_t dir);
  void add_view_tree();

  void number_tensors();
  void link_children();

  std::shared_ptr<VersionTree> tree_;
  std::vector<Scope> scopes_;
  std::uint64_t entries_left_ = 0;  // see limits::kTreeEntriesPerTensor
};

}  // namespace weft

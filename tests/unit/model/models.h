// Manifests for tests.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/manifest.h"
#include "weft/tree.h"

namespace weft::testing {

struct Spec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {2, 3};
  std::string descr = {};
};

// A content id of this length; ids with different seeds differ.
ContentId content(std::uint64_t length, std::uint64_t seed);

// A file of a header extent and then one for each tensor that has bytes; npy_other has 24 of them.
File file_of(std::string path, const std::vector<Spec>& tensors, std::string format = "safetensors");
File opaque(std::string path, std::uint64_t size = 10);
File named(std::string path, std::initializer_list<const char*> tensors);  // file_of, all F32 [2, 3]

// A config.json, and a model.safetensors of a BERT with `layers` layers: tensors and names as transformers writes them.
Manifest bert(unsigned layers);

// Throws what build() refuses.
std::shared_ptr<const VersionTree> tree_of(Manifest manifest);
// How many views show each tensor, by ordinal.
std::vector<std::uint32_t> entries_of(const VersionTree& tree);
// The path of a node: "models", "layers" or "tensors", and its names below that root.
std::string path_of(const VersionTree& tree, std::uint32_t node);
// Follows a path; throws when it is not there.
std::uint32_t at(const VersionTree& tree, std::string_view path);
bool has(const VersionTree& tree, std::string_view path);

}  // namespace weft::testing

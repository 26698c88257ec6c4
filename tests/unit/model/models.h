// Manifests for tests.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/manifest.h"
#include "weft/model/tree.h"

namespace weft::testing {

struct Spec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {2, 3};
  std::string descr = {};
};

// Returns a content id of this length. Different seeds give different ids.
ContentId content(std::uint64_t length, std::uint64_t seed);

// A file with a header extent and one extent per tensor that has bytes. A tensor of type npy_other has 24 bytes.
File file_of(std::string path, const std::vector<Spec>& tensors, std::string format = "safetensors");
File opaque(std::string path, std::uint64_t size = 10);
File named(std::string path, std::initializer_list<const char*> tensors);  // file_of, all F32 [2, 3]

// A config.json and the model.safetensors of a BERT with `layers` layers, with tensors named as transformers names
// them.
Manifest bert(unsigned layers);

// Builds a tree. Throws the error of build().
std::shared_ptr<const VersionTree> tree_of(Manifest manifest);
// Returns the number of views of each tensor, by ordinal.
std::vector<std::uint32_t> entries_of(const VersionTree& tree);
// Returns the path of a node: "models", "layers", "tensors" or "safetensors", then the names below that root.
std::string path_of(const VersionTree& tree, std::uint32_t node);
// Returns the node at a path. Throws if it does not exist.
std::uint32_t at(const VersionTree& tree, std::string_view path);
bool has(const VersionTree& tree, std::string_view path);

}  // namespace weft::testing

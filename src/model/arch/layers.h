// The leaf layers that the names of tensors describe, before their order is known.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/model/manifest.h"

namespace weft {

// Returns a file's name without the number of a shard: "model-00001-of-00005.safetensors" -> "model.safetensors".
std::string without_shard(std::string_view name);

// Files that together are one model: files of one directory with equal names apart from "-00001-of-00005", or the npy
// files of a directory.
struct ArchComponent {
  std::string directory;             // "" or with a slash at the end
  std::vector<std::uint32_t> files;  // indices into the manifest
};
std::vector<ArchComponent> components_of(const Manifest& manifest);

struct NamedTensor {
  const Tensor* tensor = nullptr;
  std::string_view name;       // in the model: without the prefix of a ModelScope
  std::uint32_t position = 0;  // among all tensors of the manifest
};
// Returns the tensors that are the model (ModelScope), and not those of an optimizer beside it.
std::vector<NamedTensor> tensors_of(const Manifest& manifest, const ArchComponent& component);

struct NamedLayer {
  std::string_view name;  // the tensors' name in the model, up to the last dot, or all of it
  std::string_view full;  // the same, of the tensors' names in the file
  std::vector<std::pair<std::string, NamedTensor>> tensors;  // by role: the name after the dot
};
// Returns the layers in the order of their names, where runs of digits count as numbers. Returns at most
// limits::kArchLayersMax + 1 layers: a model with more than the limit has no architecture.
std::vector<NamedLayer> layers_of(std::span<const NamedTensor> tensors,
                                  const std::function<bool(std::string_view)>& ignored);

// Returns the kind that a layer's tensors suggest: "linear", "norm", "conv_2d", …
std::string_view guessed_kind(const NamedLayer& layer);

bool numeric_less(std::string_view a, std::string_view b);

}  // namespace weft

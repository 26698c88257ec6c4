// The leaf layers that tensor names speak of, before anything is known about their order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/manifest.h"

namespace weft {

// Files that together are one model: those of one directory and one name but for "-00001-of-00005", or the npy files of
// a directory.
struct ArchComponent {
  std::string directory;             // "" or with its slash
  std::vector<std::uint32_t> files;  // indices into the manifest
};
std::vector<ArchComponent> components_of(const Manifest& manifest);

struct NamedTensor {
  const Tensor* tensor = nullptr;
  std::uint32_t position = 0;  // among all tensors of the manifest
};
std::vector<NamedTensor> tensors_of(const Manifest& manifest, const ArchComponent& component);

struct NamedLayer {
  std::string_view name;                                     // up to the last dot; all of it where there is none
  std::vector<std::pair<std::string, NamedTensor>> tensors;  // by role: what stands after the dot
};
// In the order of their names, where runs of digits count as numbers. Of more than limits::kArchLayersMax only one more
// than these: who has so many has no architecture.
std::vector<NamedLayer> layers_of(std::span<const NamedTensor> tensors,
                                  const std::function<bool(std::string_view)>& ignored);

// What a layer must be by its tensors alone: "linear", "norm", "conv_2d", …
std::string_view guessed_kind(const NamedLayer& layer);

bool numeric_less(std::string_view a, std::string_view b);

}  // namespace weft

#include "model/arch/layers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/limits.h"
#include "base/text.h"
#include "weft/model/safetensors_view.h"

namespace weft {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns the role of a tensor: the last part of its name, but for the names that old checkpoints use in a norm.
std::string_view role_of(std::string_view last) {
  if (last == "gamma") return "weight";
  if (last == "beta") return "bias";
  return last;
}

std::string_view digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && digit(text[end])) ++end;
  return text.substr(at, end - at);
}

std::string_view without_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

std::string without_shard(std::string_view name) {
  std::size_t of = name.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::string(name);
  std::size_t begin = name.rfind('-', of - 1);
  std::size_t end = of + 4;
  while (end < name.size() && digit(name[end])) ++end;
  if (begin == std::string_view::npos || end == of + 4 || !all_digits(name.substr(begin + 1, of - begin - 1)))
    return std::string(name);
  return std::string(name.substr(0, begin)) + std::string(name.substr(end));
}

// Compares numbers of any length. Names that differ only in leading zeros are compared as text.
bool numeric_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      std::string_view x = digits_at(a, i);
      std::string_view y = digits_at(b, j);
      auto key = [](std::string_view digits) { return std::pair(without_zeros(digits).size(), without_zeros(digits)); };
      if (key(x) != key(y)) return key(x) < key(y);
      i += x.size();
      j += y.size();
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

std::vector<ArchComponent> components_of(const Manifest& manifest) {
  std::map<std::tuple<std::string, std::string, std::string>, ArchComponent> found;
  for (std::uint32_t i = 0; i < manifest.files.size(); ++i) {
    const File& file = manifest.files[i];
    if (file.tensors.empty()) continue;
    std::size_t name = file.path.rfind('/') + 1;
    std::string directory = file.path.substr(0, name);
    std::string stem = file.format == "npy" ? std::string() : without_shard(std::string_view(file.path).substr(name));
    ArchComponent& component = found[{directory, file.format, stem}];
    component.directory = directory;
    component.files.push_back(i);
  }
  std::vector<ArchComponent> components;
  components.reserve(found.size());
  for (auto& [key, component] : found) components.push_back(std::move(component));
  return components;
}

std::vector<NamedTensor> tensors_of(const Manifest& manifest, const ArchComponent& component) {
  const ModelScope scope = ModelScope::of(manifest, component.files);
  std::vector<NamedTensor> tensors;
  std::uint32_t first = 0;
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < manifest.files.size() && next < component.files.size(); ++i) {
    const std::vector<Tensor>& all = manifest.files[i].tensors;
    if (i == component.files[next]) {
      for (std::uint32_t t = 0; t < all.size(); ++t) {
        const std::string_view name = all[t].name;
        if (scope.has(name)) tensors.push_back({&all[t], name.substr(scope.prefix_bytes()), first + t});
      }
      ++next;
    }
    first += static_cast<std::uint32_t>(all.size());
  }
  return tensors;
}

std::vector<NamedLayer> layers_of(std::span<const NamedTensor> tensors,
                                  const std::function<bool(std::string_view)>& ignored) {
  std::vector<NamedLayer> layers;
  std::unordered_map<std::string_view, std::size_t> known;
  for (const NamedTensor& tensor : tensors) {
    std::string_view name = tensor.name;
    if (ignored(name)) continue;
    std::size_t dot = name.rfind('.');
    std::string_view layer = name.substr(0, dot), full = tensor.tensor->name;
    auto [at, made] = known.try_emplace(layer, layers.size());
    if (made) layers.push_back({layer, full.substr(0, full.size() - name.size() + layer.size()), {}});
    if (layers.size() > limits::kArchLayersMax) break;
    std::string_view role = dot == std::string_view::npos ? std::string_view() : role_of(name.substr(dot + 1));
    layers[at->second].tensors.emplace_back(role, tensor);
  }
  for (NamedLayer& layer : layers) {
    std::ranges::stable_sort(layer.tensors, {}, [](const auto& tensor) { return std::string_view(tensor.first); });
    auto same_role = [](const auto& a, const auto& b) { return a.first == b.first; };
    layer.tensors.erase(std::unique(layer.tensors.begin(), layer.tensors.end(), same_role), layer.tensors.end());
  }
  std::ranges::sort(layers, [](const NamedLayer& a, const NamedLayer& b) { return numeric_less(a.name, b.name); });
  return layers;
}

std::string_view guessed_kind(const NamedLayer& layer) {
  const Tensor* weight = nullptr;
  for (const auto& [role, tensor] : layer.tensors) {
    if (role == "running_mean") return "batch_norm";
    if (role.starts_with("weight_ih")) return "recurrent";
    if (role == "weight" || role == "kernel") weight = tensor.tensor;
  }
  if (weight == nullptr) return "parameter";
  constexpr std::string_view kByDimensions[] = {"parameter", "norm", "linear", "conv_1d", "conv_2d", "conv_3d"};
  return kByDimensions[weight->shape.size() < std::size(kByDimensions) ? weight->shape.size() : 0];
}

}  // namespace weft

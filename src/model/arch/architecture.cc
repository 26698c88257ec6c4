#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "model/arch/builder.h"
#include "model/arch/layers.h"
#include "weft/model/arch.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

// Returns the outer directory: "a/b/" -> "a/"; "a/" -> "".
std::string outer(std::string_view directory) {
  return std::string(directory.substr(0, directory.substr(0, directory.size() - 1).rfind('/') + 1));
}

class ArchitectureReader {
 public:
  ArchitectureReader(const Manifest& manifest, const ReadFile& read) : manifest_(manifest), read_(read) {}

  Result<Architecture> run() {
    std::vector<Part> parts;  // of one directory
    for (const ArchComponent& component : components_of(manifest_)) {
      if (!parts.empty() && parts.front().directory != component.directory) append(std::exchange(parts, {}));
      if (too_large()) return Architecture{};
      WEFT_TRY(parts.emplace_back(), part_of(component));
    }
    append(std::move(parts));
    if (too_large()) return Architecture{};
    return std::move(whole_);
  }

 private:
  struct Part {
    std::string directory;
    const ArchTable* table = nullptr;  // that the layers fit; null if they are a sequence
    std::vector<ArchLayer> layers;
  };

  // Returns the config of the nearest directory that has one; for GGUF, the metadata of the file.
  Result<ArchConfig> config_of(const ArchComponent& component) {
    const File& first = manifest_.files[component.files[0]];
    if (first.format == "gguf") return config_of_metadata(first);
    for (std::string directory = component.directory;; directory = outer(directory)) {
      const File* file = find_file(manifest_, FileRole::published, directory + "config.json");
      if (file != nullptr && file->size <= limits::kConfigMax) return read_once(*file);
      if (file != nullptr || directory.empty()) return ArchConfig{};
    }
  }

  Result<ArchConfig> read_once(const File& file) {
    if (auto known = configs_.find(file.path); known != configs_.end()) return known->second;
    WEFT_TRY(std::string text, read_(file));
    return configs_[file.path] = read_config(text);
  }

  Result<Part> part_of(const ArchComponent& component) {
    WEFT_TRY(ArchConfig config, config_of(component));
    std::vector<NamedTensor> tensors = tensors_of(manifest_, component);
    const ArchTable* table = table_for(config);
    std::optional<std::vector<ArchLayer>> layers = table != nullptr ? fit(*table, tensors, config) : std::nullopt;
    if (!layers) return Part{component.directory, nullptr, in_sequence(tensors)};
    return Part{component.directory, table, std::move(*layers)};
  }

  bool too_large() const { return whole_.layers.size() > limits::kArchLayersMax; }

  // Appends the parts of a directory. Beside a model of a known family, files of other layers are no model: the state
  // of an optimizer or of random numbers.
  void append(std::vector<Part> parts) {
    const bool known = std::ranges::any_of(parts, [](const Part& part) { return part.table != nullptr; });
    for (Part& part : parts)
      if (part.table != nullptr || !known)
        append(part.table != nullptr ? std::string(part.table->family) : "sequence", std::move(part.layers));
  }

  void append(const std::string& family, std::vector<ArchLayer> layers) {
    if (layers.empty()) return;
    std::string joined = whole_.family.empty() ? family : whole_.family + "+" + family;
    if (joined.size() <= limits::kArchFamilyMax) whole_.family = std::move(joined);
    auto first = static_cast<std::uint32_t>(whole_.layers.size());
    for (ArchLayer& layer : layers) {
      for (std::uint32_t& input : layer.inputs) input += first;
      whole_.layers.push_back(std::move(layer));
    }
  }

  const Manifest& manifest_;
  const ReadFile& read_;
  std::map<std::string, ArchConfig> configs_;
  Architecture whole_;
};

}  // namespace

Result<Architecture> architecture_of(const Manifest& manifest, const ReadFile& read) {
  return ArchitectureReader(manifest, read).run();
}

ArchGraph graph_of(const Manifest& manifest) {
  std::vector<const Tensor*> tensors;
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors) tensors.push_back(&tensor);
  ArchGraph graph;
  graph.family = manifest.architecture.family;
  graph.vertices.reserve(manifest.architecture.layers.size());
  for (const ArchLayer& layer : manifest.architecture.layers) {
    GraphVertex vertex{layer.kind, layer.name, layer.params, {}, layer.inputs, layer.summed};
    for (const auto& [role, position] : layer.tensors) {
      const Tensor& tensor = *tensors[position];
      vertex.tensors.push_back({role, tensor.name, tensor.dtype, tensor.shape});
    }
    graph.vertices.push_back(std::move(vertex));
  }
  return graph;
}

}  // namespace weft

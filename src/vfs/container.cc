#include "vfs/container.h"

namespace weft {

Container make_container(const VersionTree& tree, std::uint32_t layer) {
  const auto tensors = container_tensors(tree, layer);
  Container out;
  out.header = safetensors_header(tree.manifest(), tensors);
  for (const TensorRef& ref : tensors) {
    const File& file = tree.manifest().files[ref.file];
    const Tensor& tensor = file.tensors[ref.tensor];
    if (tensor.extent == kNoExtent) continue;
    out.blobs.push_back(file.extents[tensor.extent].id);
    out.origins.push_back({ref.file, file.extents[tensor.extent].offset});
  }
  return out;
}

std::uint64_t container_size(const VersionTree& tree, std::uint32_t layer) {
  const Container container = make_container(tree, layer);
  std::uint64_t size = container.header.size();
  for (const ContentId& blob : container.blobs) size += blob.length;
  return size;
}

}  // namespace weft

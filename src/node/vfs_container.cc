#include "node/vfs_container.h"

namespace weft {

Container make_container(const Manifest& manifest, std::span<const TensorRef> tensors) {
  std::vector<TensorRef> held;
  Container out;
  for (const TensorRef& ref : tensors) {
    const File& file = manifest.files[ref.file];
    const Tensor& tensor = file.tensors[ref.tensor];
    if (!safetensors_can_hold(tensor.dtype)) continue;
    held.push_back(ref);
    if (tensor.extent != kNoExtent) out.blobs.push_back(file.extents[tensor.extent].id);
  }
  out.header = safetensors_header(manifest, held);
  return out;
}

std::uint64_t container_size(const Manifest& manifest, std::span<const TensorRef> tensors) {
  const Container container = make_container(manifest, tensors);
  std::uint64_t size = container.header.size();
  for (const ContentId& blob : container.blobs) size += blob.length;
  return size;
}

}  // namespace weft

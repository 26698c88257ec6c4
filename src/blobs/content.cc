#include <utility>

#include "blobs/arch_items.h"
#include "weft/model/dataset.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

ViewKey take_view(const Manifest& manifest, const File& file, Tensor& tensor) {
  return {tensor_content(manifest, file, tensor), tensor.dtype, std::move(tensor.shape), std::move(tensor.descr)};
}

}  // namespace

Result<VersionContent> content_of(Manifest manifest) {
  VersionContent content;
  WEFT_TRY(content.tree_nodes, count_nodes(manifest));
  content.kind = manifest.kind;
  content.logical_bytes = logical_bytes(manifest);
  content.outline = outline_of(manifest);
  {
    const ArchGraph graph = graph_of(manifest);
    content.architecture = items_of(graph, vertex_ids(graph));
  }
  content.views.reserve(tensor_count(manifest));
  for (File& file : manifest.files)
    for (Tensor& tensor : file.tensors) content.views.push_back(take_view(manifest, file, tensor));
  content.files.reserve(manifest.files.size());
  for (File& file : manifest.files) content.files.push_back({std::move(file.extents)});
  return content;
}

ContentDecoder content_decoder() {
  return [](std::span<const std::byte> bytes) -> Result<VersionContent> {
    WEFT_TRY(Manifest manifest, decode_manifest(bytes));
    return content_of(std::move(manifest));
  };
}

}  // namespace weft

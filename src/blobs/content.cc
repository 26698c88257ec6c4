#include <utility>

#include "blobs/arch_items.h"
#include "weft/dataset_tree.h"
#include "weft/node.h"

namespace weft {
namespace {

ViewKey view_of(const Manifest& manifest, const File& file, const Tensor& tensor) {
  return {tensor_content(manifest, file, tensor), tensor.dtype, tensor.shape, tensor.descr};
}

}  // namespace

Result<VersionContent> content_of(const Manifest& manifest) {
  VersionContent content;
  WEFT_TRY(content.tree_nodes, count_nodes(manifest));
  content.kind = manifest.kind;
  content.logical_bytes = logical_bytes(manifest);
  content.views.reserve(tensor_count(manifest));
  content.files.reserve(manifest.files.size());
  for (const File& file : manifest.files) {
    content.files.push_back({file.extents});
    for (const Tensor& tensor : file.tensors) content.views.push_back(view_of(manifest, file, tensor));
  }
  content.outline = outline_of(manifest);
  ArchGraph graph = graph_of(manifest);
  content.architecture = items_of(graph, vertex_ids(graph));
  return content;
}

ContentDecoder content_decoder() {
  return [](std::span<const std::byte> bytes) -> Result<VersionContent> {
    WEFT_TRY(const Manifest manifest, decode_manifest(bytes));
    return content_of(manifest);
  };
}

}  // namespace weft

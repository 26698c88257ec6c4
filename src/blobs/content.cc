#include "blobs/content.h"

#include <memory>
#include <utility>

#include "blobs/arch_items.h"

namespace weft {
namespace {

VersionContent::ViewContent view_of(const File& file, const Tensor& tensor, std::uint32_t links) {
  ContentId content = tensor.extent == kNoExtent ? ContentId{} : file.extents[tensor.extent].id;
  return {ViewKey{content, tensor.dtype, tensor.shape, tensor.descr}, links};
}

}  // namespace

VersionContent content_from(const VersionTree& tree, const Manifest& manifest) {
  VersionContent content;
  content.tree_nodes = tree.size();
  content.logical_bytes = logical_bytes(manifest);
  std::vector<std::uint32_t> links = tree.view_links();
  content.views.reserve(links.size());
  content.files.reserve(manifest.files.size());
  for (const File& file : manifest.files) {
    content.files.push_back({file.extents});
    for (const Tensor& tensor : file.tensors)
      content.views.push_back(view_of(file, tensor, links[content.views.size()]));
  }
  content.outline = outline_of(manifest);
  ArchGraph graph = graph_of(manifest);
  content.architecture = items_of(graph, vertex_ids(graph));
  return content;
}

Result<VersionContent> content_of(const Manifest& manifest) {
  WEFT_TRY(auto tree, VersionTree::build(std::make_shared<const Manifest>(manifest)));
  return content_from(*tree, tree->manifest());
}

ContentDecoder content_decoder() {
  return [](std::span<const std::byte> bytes) -> Result<VersionContent> {
    WEFT_TRY(Manifest manifest, decode_manifest(bytes));
    WEFT_TRY(auto tree, VersionTree::build(std::make_shared<const Manifest>(std::move(manifest))));
    return content_from(*tree, tree->manifest());
  };
}

}  // namespace weft

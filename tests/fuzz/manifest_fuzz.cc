// Decodes a manifest. An accepted manifest encodes, decodes to an equal one, and has a tree unless its names do not
// fit. Seeds are manifests written by encode_manifest().
#include <algorithm>
#include <memory>

#include "base/limits.h"
#include "fuzzing.h"
#include "weft/model/safetensors_view.h"
#include "weft/model/tree.h"

namespace weft::fuzzing {
namespace {

void require_one_line(const Error& error, Errc code) {
  require(error.message.find('\n') == std::string::npos, "messages are one line");
  require(error.code == code, "failures are called what they are");
}

void require_container(const VersionTree& tree, const ViewFile& made) {
  const ViewContainer container = view_container(tree.manifest(), made);
  require(!container.tensors.empty(), "containers hold something");
  require(container.header.size() <= sizeof(std::uint64_t) + limits::kSafetensorsHeaderMax,
          "safetensors reads the header");
  require(container.size >= container.header.size() && container.size < 1ULL << 63U, "sizes do not wrap");
}

void require_sound(const VersionTree& tree) {
  for (std::uint32_t i = kRootCount; i < tree.size(); ++i) {
    const Node& node = tree.node(i);
    require(tree.lookup(node.parent, node.name) == i, "every node is found by its name");
    require(!node.name.empty() && node.name.size() <= 255, "names fit");
    require(node.name.find('/') == std::string::npos && node.name.find('\0') == std::string::npos, "names are names");
    if (node.kind == NodeKind::layer_container)
      require(!container_tensors(tree, node.layer).empty(), "containers hold something");
    if (node.kind == NodeKind::made_container) require_container(tree, tree.view().made[node.file]);
    if (node.kind == NodeKind::made_text)
      require(!render_view_text(tree.manifest(), tree.view(), tree.view().made[node.file]).empty(),
              "texts say something");
  }
}

// Finds some bytes of a tensor in boxes, as a read does.
void require_boxes(const Tensor& tensor) {
  constexpr std::uint64_t kSome = 1024;
  const auto grid = Grid::of(tensor.dtype, tensor.shape, tensor.grid);
  std::uint64_t bytes = 0;
  for (const TensorRun& run : tensor.runs) bytes += run.length;
  require(grid.ok() && grid->memory_bytes() == bytes, "the runs are the memory of the grid");
  const Range some{grid->bytes() / 3, std::min(kSome, grid->bytes() - grid->bytes() / 3)};
  std::uint64_t found = 0;
  for (const std::uint64_t cell : grid->cells_in(some))
    grid->each_row(cell, some, [&](const Grid::Row& row) {
      require(row.in_memory <= bytes && row.length <= bytes - row.in_memory, "rows lie in the memory");
      require(row.in_tensor >= some.offset && row.in_tensor - some.offset <= some.length - row.length,
              "rows lie in the range");
      found += row.length;
      return true;
    });
  require(found == some.length, "each byte lies in one cell");
}

void fuzz_manifest(std::span<const std::byte> bytes) {
  auto manifest = decode_manifest(bytes);
  if (!manifest.ok()) return require_one_line(manifest.error(), Errc::corrupt);
  auto encoded = encode_manifest(*manifest);
  require(encoded.ok(), "what decodes encodes");
  auto again = decode_manifest(*encoded);
  require(again.ok() && *again == *manifest, "what is encoded comes back");
  for (const File& file : manifest->files)
    for (const Tensor& tensor : file.tensors)
      if (!tensor.grid.empty()) require_boxes(tensor);
  ArchGraph graph = graph_of(*manifest);
  auto parsed = parse_graph_json("graph", graph_json(graph));
  require(parsed.ok() && *parsed == graph, "a graph comes back from its JSON");
  const auto count = VersionTree::count(*manifest);
  auto tree = VersionTree::build(std::make_shared<const Manifest>(std::move(*manifest)));
  if (!tree.ok()) return require_one_line(tree.error(), Errc::invalid);
  require(count.ok() && *count == (*tree)->size(), "count() counts what build() makes");
  require_sound(**tree);
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_manifest(std::as_bytes(std::span(data, size)));
  return 0;
}

// Decodes a manifest. An accepted manifest encodes, decodes to an equal one, and has a tree unless its names do not
// fit. Seeds are manifests written by encode_manifest().
#include <memory>

#include "fuzzing.h"
#include "weft/model/tree.h"

namespace weft::fuzzing {
namespace {

void require_one_line(const Error& error, Errc code) {
  require(error.message.find('\n') == std::string::npos, "messages are one line");
  require(error.code == code, "failures are called what they are");
}

void require_sound(const VersionTree& tree) {
  for (std::uint32_t i = kRootCount; i < tree.size(); ++i) {
    const Node& node = tree.node(i);
    require(tree.lookup(node.parent, node.name) == i, "every node is found by its name");
    require(!node.name.empty() && node.name.size() <= 255, "names fit");
    require(node.name.find('/') == std::string::npos && node.name.find('\0') == std::string::npos, "names are names");
    if (node.kind == NodeKind::layer_container)
      require(!container_tensors(tree, node.layer).empty(), "containers hold something");
  }
}

void fuzz_manifest(std::span<const std::byte> bytes) {
  auto manifest = decode_manifest(bytes);
  if (!manifest.ok()) return require_one_line(manifest.error(), Errc::corrupt);
  auto encoded = encode_manifest(*manifest);
  require(encoded.ok(), "what decodes encodes");
  auto again = decode_manifest(*encoded);
  require(again.ok() && *again == *manifest, "what is encoded comes back");
  ArchGraph graph = graph_of(*manifest);
  auto parsed = parse_graph_json("graph", graph_json(graph));
  require(parsed.ok() && *parsed == graph, "a graph comes back from its JSON");
  auto tree = VersionTree::build(std::make_shared<const Manifest>(std::move(*manifest)));
  if (!tree.ok()) return require_one_line(tree.error(), Errc::invalid);
  require_sound(**tree);
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_manifest(std::as_bytes(std::span(data, size)));
  return 0;
}

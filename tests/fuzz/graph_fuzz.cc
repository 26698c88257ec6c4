// Parses a graph. An accepted graph survives a round trip through its JSON with the same ids. Seeds are graphs and
// configs.
#include "fuzzing.h"
#include "model/arch/config.h"
#include "weft/model/arch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(read_config(text));
  auto graph = parse_graph_json("graph", text);
  if (!graph.ok()) {
    fuzzing::require(graph.error().message.find('\n') == std::string::npos, "messages are one line");
    return 0;
  }
  auto again = parse_graph_json("graph", graph_json(*graph));
  fuzzing::require(again.ok() && *again == *graph, "a graph comes back from its JSON");
  fuzzing::require(vertex_ids(*again) == vertex_ids(*graph), "with its ids");
  return 0;
}

#include "base/limits.h"
#include "fuzzing.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzzing::Input input(data, size);
  auto map = parse_shard_index("place", input);
  if (!map.ok()) {
    fuzzing::require_clear(map.error(), "place: ");
    return 0;
  }
  for (const auto& [tensor, file] : *map)
    fuzzing::require(!file.empty() && file.size() <= limits::kPathMax, "paths of shards are bounded");
  return 0;
}

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "fuzzing.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (std::string_view file : {"README.md", "adapter_config.json"}) {
    fuzzing::Input input(data, size);
    const auto names = named_bases(file, input);
    fuzzing::require(names.size() <= limits::kParentsMax, "names are bounded");
    fuzzing::require(std::set(names.begin(), names.end()).size() == names.size(), "each name once");
    for (const std::string& name : names) {
      fuzzing::require(!name.empty() && name.size() <= limits::kBaseNameMax, "names are bounded");
      fuzzing::require(valid_utf8(name), "names are UTF-8");
      fuzzing::require(std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
                       "names have no control characters");
    }
  }
  return 0;
}

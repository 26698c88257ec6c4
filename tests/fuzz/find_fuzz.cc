// Parses a query and runs it on a model. Seeds are queries.
#include "fuzzing.h"
#include "weft/model/find.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  static const Manifest manifest;
  static const ArchGraph graph{
      "sequence",
      {{"linear", "a", {{"act", "relu"}}, {{"weight", "a.weight", DType::f32, {2, 3}}}, {}, false},
       {"norm", "b", {}, {}, {0}, false}}};
  auto query = Query::parse({reinterpret_cast<const char*>(data), size});
  if (!query.ok()) {
    fuzzing::require(query.error().code == Errc::invalid, "a query is invalid or good");
    fuzzing::require(query.error().message.find('\n') == std::string::npos, "messages are one line");
    return 0;
  }
  VersionRow version;
  version.metrics = {{"loss", "0.5"}};
  static_cast<void>(query->matches({version, {}, &manifest, &graph}));
  return 0;
}

// What a mount and the daemon say to each other about bytes that are not here: requests of the control socket.
//   look   {"version"}                                            answer {}
//   bring  {"version", "file", "offset", "length", "ahead", "all"} answer {"pieces": [[offset, length, place, pack]…],
//                                                                 "packs": [[id, size]…]}, a descriptor for each pack
//   cold   {}                                                     answer {"policy", "bytes_per_s"}
// Pure: text in, values out, every byte checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "os/sys.h"
#include "weft/cold.h"

namespace weft {

struct LookRequest {
  VersionId version = 0;
};
inline void fields(JsonFields& f, LookRequest& m) {
  f("version", m.version);
}
void fields(JsonFields& f, ColdRange& m);
void fields(JsonFields& f, ColdAdvice& m);

struct ColdAnswer {
  std::string body;
  std::vector<Fd> fds;
};
Result<ColdAnswer> encode_cold_pieces(const std::vector<Run>& pieces);
// Errc::invalid: what no daemon would say about this range.
Result<std::vector<Run>> decode_cold_pieces(const JsonValue& body, std::vector<Fd> fds, Range range);

}  // namespace weft

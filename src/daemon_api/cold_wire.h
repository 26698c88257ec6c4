// The requests of mounts to the daemon for bytes that are not local, over the control socket:
//   resolve {"version"}
//           answer {}
//   bring   {"version", "file", "offset", "length", "ahead", "all", "one_tensor"}
//           answer {"pieces": [[offset, length, place, pack]…], "packs": [[id, size]…]}, a descriptor for each pack
//   cold    {}
//           answer {"policy", "bytes_per_s"}
// "pack" is an index into "packs", "place" an offset in that pack. Pure: text in, values out, every byte checked.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "os/sys.h"
#include "weft/bytes/cold.h"

namespace weft {

struct ResolveRequest {
  VersionId version = 0;
};
inline void fields(JsonFields& f, ResolveRequest& m) {
  f("version", m.version);
}
void fields(JsonFields& f, ColdRange& m);
void fields(JsonFields& f, ColdAdvice& m);

struct ColdAnswer {
  std::string body;
  std::vector<Fd> fds;
};
Result<ColdAnswer> encode_cold_pieces(const std::vector<Run>& pieces);
// Returns the pieces, which cover the start of `range` without gaps. Errc::invalid: they do not, or a piece is outside
// of its pack.
Result<std::vector<Run>> decode_cold_pieces(const JsonValue& body, std::vector<Fd> fds, Range range);

}  // namespace weft

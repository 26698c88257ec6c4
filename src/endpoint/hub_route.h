// The requests of a hub's clients, by their paths. Pure; each byte is hostile.
#pragma once

#include <string>
#include <vector>

#include "http/message.h"
#include "weft/names.h"

namespace weft {

struct HubRoute {
  enum class What : unsigned char {
    info,   // GET /api/models/NAME, /api/models/NAME/revision/REVISION
    tree,   // GET /api/models/NAME/tree/REVISION[/DIRECTORY]
    paths,  // POST /api/models/NAME/paths-info/REVISION
    refs,   // GET /api/models/NAME/refs
    file,   // GET or HEAD /NAME/resolve/REVISION/FILE
  };
  What what = What::info;
  HubName repository;
  std::string revision;  // "": of `refs`
  std::string path;      // of a directory or a file; "": the root
};

// Returns what a path may ask for. A name is ORG/NAME or NAME, so "/api/models/a/refs" may be the model "a/refs" or the
// refs of "a": the longer name comes first. Only repositories whose names hub_name() accepts. Empty: no request that
// the endpoint answers.
std::vector<HubRoute> hub_routes(const HttpPath& path);

}  // namespace weft

// Answers from the upstream's listing of a commit, while the pull of the commit runs. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "endpoint/hub_route.h"
#include "endpoint/served_file.h"
#include "http/message.h"
#include "upstream/upstream_hub.h"

namespace weft {

// Returns the answer to a request for metadata. The result is empty for a GET of an existing file, whose bytes the
// listing lacks. A listing is one page of any length: the store, which answers later requests, has other cursors.
std::optional<HttpReply> listed_answer(const HttpRequest& request, const HubRoute& route, const UpstreamCommit& commit);

// Returns the file of the listing at this path; null if there is none.
const HubFile* listed_file(const UpstreamCommit& commit, std::string_view path);
ServedFile served(const HubFile& file);

}  // namespace weft

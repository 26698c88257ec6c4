// Answers from the upstream's listing of a commit, while the pull of the commit runs. Pure.
#pragma once

#include <optional>

#include "endpoint/hub_route.h"
#include "http/message.h"
#include "upstream/upstream_hub.h"

namespace weft {

// Returns the answer to a request for metadata. The result is empty for a GET of an existing file, whose bytes the
// listing lacks. A listing is one page of any length: the store, which answers later requests, has other cursors.
std::optional<HttpReply> listed_answer(const HttpRequest& request, const HubRoute& route, const UpstreamCommit& commit);

}  // namespace weft

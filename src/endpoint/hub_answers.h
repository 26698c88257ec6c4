// Answers of the endpoint without bytes of files, in the words of a hub.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "weft/result.h"

namespace weft {

// A refusal that clients turn into an exception of theirs by its code. `code`: "RepoNotFound", "RevisionNotFound",
// "EntryNotFound"; "": none.
HttpReply hub_refusal(int status, std::string_view code, std::string_view message);
// An error of the store or of a fetch: 503 if a later request may succeed, else 500.
HttpReply hub_failure(const Error& error);
HttpReply hub_json(std::string json);

// Returns the paths that the body of a request for named paths has, as a form or as JSON. Errc::invalid.
Result<std::vector<std::string>> named_paths(const HttpRequest& request);

// Returns the field Link that leads to the next page of a listing: the same request with this cursor. Its URL is
// absolute if the request names the server's host, since some clients take no other. A client sends its token there
// too, so the URL is one of https if a proxy says by X-Forwarded-Proto that it took the request over TLS.
std::string next_page_link(const HttpRequest& request, const std::string& cursor);

}  // namespace weft

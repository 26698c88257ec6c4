// Answers of the endpoint without bytes of files, in the words of a hub.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "endpoint/served_file.h"
#include "http/message.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// A refusal that clients turn into an exception of theirs by its code. `code`: "RepoNotFound", "RevisionNotFound",
// "EntryNotFound"; "": none.
HttpReply hub_refusal(int status, std::string_view code, std::string_view message);
// An error of the store or of a fetch: 503 if a later request may succeed, else 500.
HttpReply hub_failure(const Error& error);
HttpReply hub_json(std::string json);
// `where`: the version, or the repository. `commit`: as clients name it; they remember that the commit lacks the file.
HttpReply no_file(std::string_view path, std::string_view where, const std::string& commit);

// Returns the fields that describe a file in the answer to GET and HEAD. `commit`: as clients name it.
HttpFields file_fields(const ServedFile& file, std::string etag, const std::string& commit);

// Writes the members of a repository but its files. Uses the name, the kind, the time and the access of
// the version.
void write_repository(JsonWriter& json, const VersionRow& version, const std::string& commit);
// `area`: "heads" for a branch, "tags" for a tag.
void write_ref(JsonWriter& json, std::string_view name, std::string_view area, const std::string& commit);

// True for an argument "1" or "true".
bool is_true_argument(const HttpRequest& request, std::string_view name);
// Adds an ETag to a text, and turns the answer into 304 if the client has the text.
HttpReply with_etag(const HttpRequest& request, HttpReply reply);

// Returns the paths that the body of a request for named paths has, as a form or as JSON. Errc::invalid.
Result<std::vector<std::string>> named_paths(const HttpRequest& request);

// Returns the field Link that leads to the next page of a listing: the same request with this cursor. Its URL is
// absolute if the request names the server's host, since some clients take no other. A client sends its token there
// too, so the URL is one of https if a proxy says by X-Forwarded-Proto that it took the request over TLS.
std::string next_page_link(const HttpRequest& request, const std::string& cursor);

}  // namespace weft

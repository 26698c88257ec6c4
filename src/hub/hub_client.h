// Reads a model hub: the commit of a revision, the list of its files, and bytes of a file. All files of a commit are
// immutable, so a caller asks for the commit first and names it from then on.
//
// Messages begin with the repository, "hf:org/bert", and never contain the token. Common errors: Errc::not_found: no
// such repository, revision or file. Errc::permission: a gated or private repository, or a token that the hub refuses.
// Errc::changed: the hub has another file than it listed. Errc::invalid: an answer that cannot be. Errc::unreachable:
// offline by HF_HUB_OFFLINE too. Others: http/client/http_reader.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/client/http_reader.h"
#include "hub/hub_listing.h"
#include "hub/hub_name.h"
#include "hub/hub_settings.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// A file as the hub describes it, without its bytes.
struct HubFileFacts {
  std::string etag;  // without quotes: SHA-256 of a file in LFS, else git SHA-1
  std::uint64_t size = 0;
};

// Returns how a hub is read over the Internet: proxies of the environment, a connection within ten seconds.
HttpReaderOptions hub_reading();

// Any thread.
class HubClient {
 public:
  // `reading` has the waits, the proxies and the stop; the settings replace its token, its authorities and its agent.
  explicit HubClient(HubSettings settings, HttpReaderOptions reading = hub_reading());

  // Returns the commit that a revision is now.
  Result<HubRevision> revision(const HubSource& source);
  // Returns all files of a commit, by path. Follows the pages of the listing on one server, without a loop.
  Result<std::vector<HubFile>> files(const HubName& repository, const std::string& commit);
  // Asks the hub alone: a redirect to another server is not followed.
  Result<HubFileFacts> facts(const HubName& repository, const std::string& commit, const std::string& path);
  // Gives the sink these bytes of a file, in order; the range is not empty and lies in the file. Resumes if a
  // connection ends. If the result is an error, the sink may have received the first bytes.
  // The caller verifies digests.
  Status read(const HubName& repository, const std::string& commit, const HubFile& file, Range range,
              const ByteSink& sink);

 private:
  struct Subject;
  Result<HttpResult> get_json(const Subject& subject, const std::string& url, std::size_t body_max, std::string& text);
  Result<std::string> next_page(const Subject& subject, const HttpResult& page) const;
  Status check_status(const Subject& subject, const HttpResult& result, int expected) const;
  Error refusal(const Subject& subject, const HttpResult& result, int expected) const;
  Error no_access(const Subject& subject, const HttpResult& result) const;
  Status check_online(const Subject& subject) const;
  Error named(const Subject& subject, Error error) const;

  const HubSettings settings_;
  HttpReader reader_;
};

}  // namespace weft

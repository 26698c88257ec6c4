// A hub as the owner of pulls asks it: an interface, so that tests need neither a network nor a child.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hub/hub_listing.h"
#include "hub/hub_name.h"
#include "weft/result.h"

namespace weft {

struct UpstreamCommit {
  std::string commit;
  std::vector<HubFile> files;  // by path
  std::string access = {};     // as Provenance::access (weft/store_rows.h)
};

// Any thread.
class UpstreamHub {
 public:
  virtual ~UpstreamHub() = default;
  // Returns the commit that a revision is now, with its files. Nothing: the repository has no such revision.
  // Errc::not_found: there is no such repository. Errc::permission: the token does not open its files. Other errors:
  // hub/hub_client.h.
  virtual Result<std::optional<UpstreamCommit>> ask(const HubSource& source) = 0;
  // Returns once the store has this commit of ask(), under the name of the repository and with the tag of the revision
  // if it is a branch or a tag. The branch may have moved meanwhile. The message says why the store lacks the commit.
  virtual Status pull(const HubSource& source, const std::string& commit) = 0;
  // Ends all calls, also later ones, with Errc::cancelled, and returns at once.
  virtual void stop() = 0;
};

}  // namespace weft

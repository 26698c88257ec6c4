// Names of revisions on a model hub, as users write them, and the URLs of a hub. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/names.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::string_view kHubScheme = "hf:";
inline constexpr std::string_view kHubBranch = "main";

// A revision of a repository: a branch, a tag, "refs/pr/N" or a commit.
struct HubSource {
  HubName repository;
  std::string revision{kHubBranch};
  bool operator==(const HubSource&) const = default;
};

// Parses "hf:ORG/NAME[@REVISION]" and "hf:datasets/ORG/NAME[@REVISION]". Some old names have no "ORG/". `kind` is that
// of a name without "datasets/". Errc::invalid.
Result<HubSource> parse_hub_source(std::string_view text, VersionKind kind = VersionKind::model);
// Returns "hf:org/bert" or "hf:datasets/org/c4".
std::string text_of(const HubName& repository);

// Checks the name of a repository: one or two components of at most 96 bytes of [A-Za-z0-9._-], each with a letter, a
// digit or '_' at both ends. No "--", no "..", no ".git" at the end (huggingface_hub, validate_repo_id). Errc::invalid.
Status check_hub_name(std::string_view name);
// Checks a revision: a name that git accepts for a branch, of at most limits::kHubRevisionMax bytes. Errc::invalid.
Status check_hub_revision(std::string_view revision);
// Returns the name of a branch or of a tag as a tag of a store. Returns nothing for a commit, and for a name that no
// tag can have, such as refs/pr/1.
std::optional<std::string> tag_of_revision(std::string_view revision);

// The URLs of one repository. Names, revisions and paths were checked before.
class HubUrls {
 public:
  HubUrls(std::string endpoint, const HubName& repository);  // the endpoint has no '/' at its end

  std::string page() const;  // for people
  std::string revision(std::string_view revision) const;
  std::string tree(std::string_view revision) const;  // all files, page by page
  std::string file(std::string_view revision, std::string_view path) const;

 private:
  std::string page_;
  std::string api_;
};

}  // namespace weft

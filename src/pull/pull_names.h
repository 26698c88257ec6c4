// The names that a revision of a hub has in a store. Pure.
#pragma once

#include <string>
#include <string_view>

#include "hub/hub_name.h"
#include "weft/names.h"
#include "weft/result.h"

namespace weft {

// Returns the name of a repository, "org/bert" for both hf:org/bert and hf:datasets/org/bert. Errc::invalid: no version
// can have this name; the message names --name.
Result<std::string> version_name_of(const HubName& repository);

// Returns the description of a version: "hf:org/bert of https://huggingface.co, revision main, commit 0123…".
std::string description_of(const std::string& endpoint, const HubSource& source, std::string_view commit);

// Returns the key of the PullArea of a source, which the text tells from others. All revisions of a repository have
// one: mostly they have the same files.
std::string pull_key(std::string_view text);
std::string hub_pull_key(const std::string& endpoint, const HubName& repository);

}  // namespace weft

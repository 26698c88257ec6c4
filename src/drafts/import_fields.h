// The members of ImportOptions as JSON: for weftd, and for the import that publishes a draft.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/json_fields.h"
#include "weft/programs/operations.h"
#include "weft/store/publish.h"

namespace weft {

// The option of `weft import` that makes it read its ImportOptions, without paths, from the standard input. It is the
// mount's, and not for users.
inline constexpr char kOptionsOnInput[] = "--options-on-input";
// The option of an import that runs again, after weftd ended under the first: a user who may not write to the store
// waits for weftd.
inline constexpr char kAwaitDaemon[] = "--await-daemon";
// Part of the message of an error that leaves open whether weftd has done what a program asked.
inline constexpr std::string_view kOutcomeUnknown = "whether it did what was asked is not known";

void fields(JsonFields& f, std::pair<std::string, std::string>& metric);
void fields(JsonFields& f, Provenance& m);
// Everything but `paths` and `links`, which the process that finds the files uses. Into an object with other members.
void fields(JsonFields& f, ImportOptions& m);

}  // namespace weft

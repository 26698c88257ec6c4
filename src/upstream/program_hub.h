// A hub that is asked by src/hub and pulled from by the program `weft pull`.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hub/hub_settings.h"
#include "upstream/upstream_hub.h"
#include "weft/result.h"

namespace weft {

struct ProgramHubOptions {
  std::string endpoint;    // the URL of the hub
  std::string token_file;  // "": requests have no token
  std::string store;       // the directory of the store, which a daemon serves
  std::string program;     // the path of `weft`
};

// Returns the variables that tell `weft pull` and read_hub_settings() the hub and its token. A token of the environment
// is hidden: the endpoint of another hub must not receive it.
std::vector<std::pair<std::string, std::string>> hub_variables(const ProgramHubOptions& options);

// Reads the token. Errc::invalid: the endpoint or the token cannot be; the message has no part of the token. Other
// errors are those of reading the token's file.
Result<HubSettings> upstream_settings(const ProgramHubOptions& options);

// Errors are those of upstream_settings(). The child of a pull ends with the thread that called pull(), and no later
// than ten seconds after stop().
Result<std::unique_ptr<UpstreamHub>> program_hub(ProgramHubOptions options);

}  // namespace weft

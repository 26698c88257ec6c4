// weftd at work: the store, the registry, the control socket, until it is told to end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/settings.h"
#include "weft/result.h"

namespace weft {

struct DaemonOptions {
  std::string config_file;  // "" for none
  SettingValues flags;      // override what the file says
  std::string notify_socket;
};

// File, then flags. Errc::invalid.
Result<SettingValues> gather_settings(const DaemonOptions& options);

// Runs until SIGTERM or SIGINT. These and SIGHUP must be blocked in the process's threads before. `false`: some
// requests hung and were left; the process must end without destroying anything.
Result<bool> run_daemon(const DaemonOptions& options);

}  // namespace weft

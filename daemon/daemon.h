// Runs weftd: opens the store, the registry and the control socket, and serves until a signal ends it.
#pragma once

#include <csignal>
#include <string>

#include "daemon/settings.h"
#include "weft/result.h"

namespace weft {

struct DaemonOptions {
  std::string config_file;  // "" for none
  SettingValues flags;      // override the file
  std::string notify_socket;
  std::string commit;  // of the program
};

// Returns the settings of the file, overridden by the flags.
SettingValues gather_settings(const DaemonOptions& options, Mistakes& mistakes);
Result<SettingValues> gather_settings(const DaemonOptions& options);  // Errc::invalid: the first mistake

// The signals that end the daemon or make it read its settings again: SIGTERM, SIGINT, SIGHUP.
sigset_t daemon_signals();

// Runs until SIGTERM or SIGINT. The caller blocks daemon_signals() in all threads first. `false`: some requests still
// hang; the process must exit without running destructors.
Result<bool> run_daemon(const DaemonOptions& options);

}  // namespace weft

// weftd --check: finds all mistakes of a node at once.
#pragma once

#include "daemon/daemon.h"
#include "daemon/settings.h"

namespace weft {

// Checks the settings, and everything that they name: the store, the key and its mode, the password, certificates, the
// origin, the addresses, and the login and the rights in etcd. Changes nothing. A daemon may run for the store.
Mistakes check_node(const DaemonOptions& options);

}  // namespace weft

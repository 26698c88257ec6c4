// Three files of a store: STORE/cluster identifies its cluster and node, STORE/origin the origin that has its bytes,
// and STORE/daemon.lock excludes other writers while a daemon runs.
#pragma once

#include <optional>
#include <string>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Returns nothing if the store belongs to no cluster.
Result<std::optional<ClusterIdentity>> read_cluster(const SafePath& store_path);
Status write_cluster(const SafePath& store_path, const ClusterIdentity& identity);  // durable

// Returns the id of the store's origin; "" if it has none yet.
Result<std::string> read_origin(const SafePath& store_path);
Status write_origin(const SafePath& store_path, const std::string& uuid);  // durable

// A writer holds the lock while it writes. Errc::busy, with the daemon's name, while a daemon has the store.
Result<Fd> lock_against_daemon(const SafePath& store_path);
Result<Fd> lock_as_daemon(const SafePath& store_path, const Patience& patience);

// Deletes the three files, when the store is deleted.
Status remove_cluster_files(const SafePath& store_path);

}  // namespace weft

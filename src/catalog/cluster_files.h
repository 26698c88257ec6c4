// STORE/cluster, which says whose store it is, STORE/origin, which says where its bytes went, and STORE/daemon.lock,
// which keeps other writers out while a daemon runs.
#pragma once

#include <optional>
#include <string>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// None: a store of its own.
Result<std::optional<ClusterIdentity>> read_cluster(const SafePath& store_path);
Status write_cluster(const SafePath& store_path, const ClusterIdentity& identity);  // durable

// The id of the origin that the store knows; "": of none yet.
Result<std::string> read_origin(const SafePath& store_path);
Status write_origin(const SafePath& store_path, const std::string& uuid);  // durable

// Held for as long as one writes. Errc::busy, with its name, while a daemon has the store.
Result<Fd> lock_against_daemon(const SafePath& store_path);
Result<Fd> lock_as_daemon(const SafePath& store_path, const Patience& patience);

// All these files, of a store that is taken away.
Status remove_cluster_files(const SafePath& store_path);

}  // namespace weft

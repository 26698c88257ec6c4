// Repair of a damaged blob by the daemon: the store forgets the damaged bytes, and the fetcher brings the blob again.
#pragma once

#include "fetch/fetcher.h"
#include "weft/cluster_store.h"
#include "weft/progress.h"

namespace weft {

// Fetches the blob from peers or the origin, in the order of all fetches. If the damaged bytes were this node's own,
// the new ones are too. Fine if the stored bytes are whole, or no version needs them. If nobody can give the blob, the
// store is as it was; the error is that of the fetch.
Status refetch_blob(ClusterStore& store, Fetcher& fetcher, const ContentId& id, Progress& progress);

}  // namespace weft

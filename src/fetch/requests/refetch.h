// Repair of a damaged blob by the daemon: the store forgets the damaged bytes, and the fetcher fetches the blob again.
#pragma once

#include "fetch/fetcher.h"
#include "weft/progress.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Fetches the blob from peers or the origin, in the order of all fetches. If the damaged bytes were this node's own and
// not cache, the new ones are too. Succeeds at once if the stored bytes are whole, or no version needs them. If no
// source has the blob, the store stays unchanged, and the error is that of the fetch.
Status refetch_blob(Store& store, FetchedCache& cache, Fetcher& fetcher, const ContentId& id, Progress& progress);

// Opens a blob that a live version needs, and fetches it from peers or the origin first if this node lacks it. The
// caller verifies the bytes.
Result<OpenPlace> bring_blob(Store& store, Fetcher& fetcher, const ContentId& id, Progress& progress);

}  // namespace weft

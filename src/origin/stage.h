// Takes a version to the origin.
#pragma once

#include <cstddef>
#include <map>

#include "blobs/lent_store.h"
#include "origin/dir.h"
#include "weft/progress.h"
#include "weft/store_rows.h"

namespace weft {

// Blobs that are neither here nor at one origin, each with how many manifests had places there when it was looked for
// in all of them: nothing goes from there, so with as many it is not looked for again.
using LookedFor = std::map<ContentId, std::size_t>;

// Everything that the version needs is at the origin, durably, when it returns: packs that are not there yet, the
// manifest, where its blobs lie, what was said of it. Errc::not_found: a blob is neither here nor at the origin yet,
// because another node is still to write it. Errc::absent: nobody is known that would. Errc::cancelled. Bytes are
// verified on the way; progress is told of those that move. Many nodes may do so at once, for the same version too. It
// may hang in the origin's file system; a store that is taken back meanwhile is not touched any more: Errc::cancelled.
Status stage_version(const LentStore& store, const OriginDir& origin, const VersionRow& row, Progress& progress,
                     LookedFor& looked_for);

}  // namespace weft

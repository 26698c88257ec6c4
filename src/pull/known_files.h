// The files of a commit that a store has already.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "hub/hub_listing.h"
#include "weft/bytes/cold.h"
#include "weft/result.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// Returns the version of this name that was published from the commit and has exactly these files, sorted by path, by
// their paths, sizes and the SHA-256 of those in LFS: a commit never changes. Nothing if there is none.
Result<std::optional<VersionRow>> version_of_commit(Store& store, ManifestResolver& resolver, const std::string& name,
                                                    const std::string& commit, std::span<const HubFile> files);

}  // namespace weft

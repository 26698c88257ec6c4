// Brings a version, or some of its layers, to this node before anybody reads it.
#pragma once

#include <cstdint>
#include <string>

#include "fetch/fetcher.h"
#include "weft/cold.h"
#include "weft/manifest.h"
#include "weft/progress.h"

namespace weft {

// By file: the runs that hold the tensors `layers` names, and what lies between tensors. `layers` is a pattern, as
// glob_matches() takes it, for the name of a tensor or of any layer above it ("encoder.layer.[0-3]"); "" means all.
std::vector<std::vector<Range>> wanted_ranges(const Manifest& manifest, const std::string& layers);

// All of the version that is wanted is in the store when it returns. Errc::cancelled: what has come stays.
// Errc::not_found: no tensor is named so.
Result<FetchReport> fetch_version(Store& store, Fetcher& fetcher, const VersionRow& row, const std::string& layers,
                                  Progress& progress);

// Brings what an import that inherits from the version may read of it: its config.json, one in a directory too.
Status fetch_configs(Store& store, Fetcher& fetcher, const VersionRow& row);

}  // namespace weft

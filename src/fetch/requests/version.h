// Fetches a version, or some of its layers, before it is read.
#pragma once

#include <cstdint>
#include <string>

#include "fetch/fetcher.h"
#include "weft/bytes/cold.h"
#include "weft/bytes/traffic.h"
#include "weft/model/manifest.h"
#include "weft/progress.h"

namespace weft {

// Returns, by file, the ranges of the tensors that `layers` matches, and of all bytes outside of tensors. `layers` is a
// pattern, as glob_matches() takes it, for the name of a tensor or of any layer above it ("encoder.layer.[0-3]"); ""
// means all.
std::vector<std::vector<Range>> wanted_ranges(const Manifest& manifest, const std::string& layers);

// Fetches the wanted ranges of a version into the store and its index, as traffic of this class. Errc::cancelled: the
// bytes fetched so far stay. Errc::not_found: no tensor or layer matches.
Result<FetchReport> fetch_version(Store& store, Fetcher& fetcher, const VersionRow& row, const std::string& layers,
                                  Progress& progress, Traffic traffic = Traffic::ahead);

// Fetches the files that an import may read if it inherits from the version: every config.json, in any directory.
Status fetch_configs(Store& store, Fetcher& fetcher, const VersionRow& row);

}  // namespace weft

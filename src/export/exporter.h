// Copies the published files of a version out of a store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "export/export_place.h"
#include "weft/model/manifest.h"
#include "weft/model/safetensors_view.h"
#include "weft/programs/operations.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Returns the small files of a data set, sorted by path.
Result<std::vector<SmallFile>> sorted_small_files(Store& store, const Manifest& manifest);

// Writes the published files, the small files and the empty directories of a version, and publishes the place. Verifies
// every byte that it copies against its digest. The caller holds the version. `where` is the place in messages. The
// manifest and `small`, which is sorted by path, outlive the place.
Status write_files(Store& store, const Manifest& manifest, std::span<const SmallFile> small, ExportPlace& place,
                   const std::string& where, Progress& progress);

// Writes the directory that safetensors/ of a mount shows of a version, and publishes the place. Verifies the stored
// bytes as write_files() does. The manifest and the view, which is the manifest's, outlive the place.
Status write_view(Store& store, const Manifest& manifest, const SafetensorsView& view, ExportPlace& place,
                  const std::string& where, Progress& progress);
std::uint64_t view_bytes(const Manifest& manifest, const SafetensorsView& view);  // of all its files

}  // namespace weft

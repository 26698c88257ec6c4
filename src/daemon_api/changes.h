// Changes of names, and gc, as requests describe them: weftd makes them for its clients, and the command line by itself
// while no weftd runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "daemon_api/control_messages.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// As resolve_version, in a snapshot of its own.
Result<VersionRow> version_of(Store& store, std::string_view spec);

// Store::set_tag, or the registry's.
using SetTag = std::function<Status(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number)>;
// The version that is tagged now; number 0 after a deletion.
Result<VersionName> change_tag(Store& store, const TagRequest& request, const SetTag& set);

// Store::remove_versions, or the registry's.
using RemoveSome = std::function<Result<std::size_t>(std::span<const VersionName> versions)>;
// Removes each version once, in the order of the specs: MODEL@V, or with `all` every live version of MODEL. Nothing is
// removed unless all are found. Calls `removed` for each as it is gone: what comes after may fail.
Status remove_versions(Store& store, const RemoveRequest& request, const RemoveSome& remove,
                       const std::function<Status(const VersionName&)>& removed);

// Versions of the model that have no tag and are older than the newest `keep` of it.
Result<std::vector<VersionName>> versions_to_displace(Store& store, ModelId model, std::uint64_t keep);
// Removes these; `remove` as above. Returns how many.
Result<std::size_t> displace_versions(Store& store, ModelId model, std::uint64_t keep, const RemoveSome& remove);

Status change_pin(Store& store, const PinRequest& request);

// gc of the store, then of the assembled files, then of drafts that nobody has written to for so long.
Result<GcOutcome> collect_garbage(Store& store, const GcOptions& options, std::chrono::seconds drafts_kept,
                                  Progress& progress);

}  // namespace weft

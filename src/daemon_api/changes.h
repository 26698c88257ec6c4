// Executes the requests that change names, and gc. weftd executes them for its clients; without a weftd, the command
// line executes them itself.
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
#include "weft/store/store.h"

namespace weft {

// Store::set_tag or Registry::set_tag.
using SetTag = std::function<Status(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number)>;
// Sets or deletes a tag. Returns the tagged version; number 0 after a deletion.
Result<VersionName> change_tag(Store& store, const TagRequest& request, const SetTag& set);

// Store::remove_versions or Registry::remove_versions.
using RemoveSome = std::function<Result<std::size_t>(std::span<const VersionName> versions)>;
// Removes each version once, in the order of the specs: MODEL@V, or with `all` every live version of MODEL. Removes
// nothing unless all are found. Calls `removed` after each removal, because a later one may fail.
Status remove_versions(Store& store, const RemoveRequest& request, const RemoveSome& remove,
                       const std::function<Status(const VersionName&)>& removed);

// Returns the live versions of the model that have no tag and are older than its newest `keep` versions.
Result<std::vector<VersionName>> versions_to_displace(Store& store, ModelId model, std::uint64_t keep);
// Removes versions_to_displace() and returns their number; nothing for `keep` 0.
Result<std::size_t> displace_versions(Store& store, ModelId model, std::uint64_t keep, const RemoveSome& remove);

Status change_pin(Store& store, const PinRequest& request);

// Runs gc of the store, then of assembled files, then of drafts that were not written for `drafts_kept`.
Result<GcOutcome> collect_garbage(Store& store, const GcOptions& options, std::chrono::seconds drafts_kept,
                                  Progress& progress);

}  // namespace weft

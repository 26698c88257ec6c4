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
// Store::protect_tag or Registry::protect_tag.
using ProtectTag = std::function<Status(std::string_view model, std::string_view tag, bool on)>;
// Sets, deletes, protects or unprotects a tag. Returns the tagged version; number 0 after a deletion.
Result<VersionName> change_tag(Store& store, const TagRequest& request, const SetTag& set, const ProtectTag& protect);

// Store::describe or Registry::describe.
using Describe = std::function<Status(std::string_view model, std::uint64_t number, const DescriptionChange& change)>;
// Changes the message and metrics of a version. Returns the version.
Result<VersionName> change_description(Store& store, const NoteRequest& request, const Describe& describe);

// Store::rename_model or Registry::rename_model.
using RenameModel = std::function<Status(std::string_view model, std::string_view to)>;
// Renames a model that has a live version. The error for any other name lists the models.
Status change_name(Store& store, const RenameRequest& request, const RenameModel& rename);

// Store::remove_versions or Registry::remove_versions.
using RemoveSome = std::function<Result<std::size_t>(std::span<const VersionName> versions, Tagged tagged)>;
using OnRemoved = std::function<Status(const VersionName&)>;
// Removes each version once, in the order of the specs: MODEL@V, with `all` every live version of MODEL, with `keep`
// the versions_to_displace() of MODEL. Removes nothing unless all are found and, without `force`, none has a tag. Calls
// `removed` after each removal, because a later one may fail; with `dry_run` for each version that would be removed.
Status remove_versions(Store& store, const RemoveRequest& request, const RemoveSome& remove, const OnRemoved& removed);

// Store::undelete or Registry::undelete.
using Undelete = std::function<Result<UndeletedVersion>(std::string_view model, std::uint64_t number)>;
using OnUndeleted = std::function<Status(const UndeletedVersion&)>;
// Brings each version back once, in the order of the specs, and calls `undeleted` after each, because a later one may
// fail.
Status undelete_versions(const UndeleteRequest& request, const Undelete& undelete, const OnUndeleted& undeleted);

// Returns the live versions of the model that the rule does not keep, oldest first. Errc::not_found: no live version
// has the metric of `best`.
Result<std::vector<VersionName>> versions_to_displace(Store& store, ModelId model, const KeepRule& keep);
// Removes versions_to_displace(), except those that get a tag meanwhile. Calls `removed` after each removal.
Status displace_versions(Store& store, ModelId model, const KeepRule& keep, const RemoveSome& remove,
                         const OnRemoved& removed);

Status change_pin(Store& store, const PinRequest& request);

// Frees what no version decides: assembled files that no version needs, and drafts and pulls that were not written for
// `drafts_kept`. Adds to `outcome`.
Status collect_unversioned(Store& store, bool dry_run, std::chrono::seconds drafts_kept, GcOutcome& outcome);
// Runs gc of the store, then collect_unversioned().
Result<GcOutcome> collect_garbage(Store& store, const GcOptions& options, std::chrono::seconds drafts_kept,
                                  Progress& progress);

}  // namespace weft

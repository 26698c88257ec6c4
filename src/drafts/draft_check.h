// Checks of a draft before a publish, beyond those of an import: no file is open for writing, and no link leads out of
// the draft.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "base/limits.h"
#include "drafts/draft_facts.h"
#include "weft/result.h"

namespace weft {

inline constexpr char kDraftErrorFile[] = ".weft.error";
// In a published checkpoint: the name of its version.
inline constexpr char kDraftPublishedFile[] = ".weft.published";

// A publish calls it several times a second. Its error ends the publish: the user has cancelled it, or the time is
// over.
using GoesOn = std::function<Status()>;

// Checks the draft in the directory `content` and returns its facts, or nothing if it has no kDraftFactsFile.
// Errc::busy: a file stays open for writing, or mapped shared and writable, for a second (the kernel reports a close a
// little late). Errc::invalid: content that no version can have, or more than `files_max` entries. Deletes
// kDraftErrorFile and kDraftPublishedFile.
Result<std::optional<DraftFacts>> check_draft(int content, const GoesOn& goes_on,
                                              std::size_t files_max = limits::kFilesPerVersionMax);

// Checks for writers only. Errc::busy as check_draft(), after a short wait if `waits`.
Status check_not_written(int content, bool waits);

// Writes the error into kDraftErrorFile and returns it: the failure of the publish, not of a system call.
Error refuse(int content, const Error& error);

}  // namespace weft

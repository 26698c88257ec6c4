// What a draft must be so that it can be published, beyond what an import asks: nobody writes to it any more, and no
// link leads out of it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "base/limits.h"
#include "fuse/drafts/draft_facts.h"
#include "weft/result.h"

namespace weft {

inline constexpr char kDraftErrorFile[] = ".weft.error";
// Of a checkpoint that stays where it is: the version that it is too.
inline constexpr char kDraftPublishedFile[] = ".weft.published";

// `content` is the draft's directory. Errc::busy: a file is open for writing or mapped shared and writable (waits for a
// second: the kernel tells of a close a little later); Errc::invalid: what no version can have, and more entries than
// `files_max`. Nothing: the draft has no kDraftFactsFile. `pause` as DraftPublisher::publish. Takes kDraftErrorFile and
// kDraftPublishedFile away.
Result<std::optional<DraftFacts>> check_draft(int content, const std::function<bool()>& pause,
                                              std::size_t files_max = limits::kFilesPerVersionMax);

// Errc::busy as check_draft(), after a short while or at once. It makes none of the other checks.
Status check_not_written(int content, bool waits);

// Writes what is wrong into kDraftErrorFile and returns the errno, with a minus sign.
int refuse(int content, const Error& error);

}  // namespace weft

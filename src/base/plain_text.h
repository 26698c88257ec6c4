// Texts that users write about versions: messages, metrics, names of base models.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

enum class TextLines : std::uint8_t { one, many };
// True for UTF-8 without control characters (C0, DEL, C1). Text of many lines may have line ends and tabs.
bool plain_text(std::string_view text, TextLines lines);

// Errc::invalid for a message or metrics that no version can have: too long or too many, of control characters, a
// metric without a name or given twice.
Status check_message(std::string_view message);
Status check_metrics(const Metrics& metrics);
// Checks both, and the time of their last change: at most limits::kTimeNsMax.
Status check_description(std::string_view message, const Metrics& metrics, std::uint64_t described_ns);

// True if weft may have written these texts: they are short, and plain text of one line.
bool can_be_author(const Author& by);
// Errc::permission: the tag has an owner, who has protected it, and `by` is bound and another user.
Status check_tag_owner(std::string_view model, std::string_view tag, const std::string& owner, const Author& by);

// Errc::invalid for a source that no version can have: texts or URLs that are too long or too many, or of control
// characters; a commit, an access or a time that cannot be.
Status check_source(const Provenance& source);
// Adds a URL to a source, or counts it if the source cannot list it.
void add_url(Provenance& source, std::string url);

// Returns the version with the change, made at `time_ns`, or later if the version was changed later. Nothing if the
// version is so already. Errc::invalid as above.
Result<std::optional<VersionRow>> described(const VersionRow& version, const DescriptionChange& change,
                                            std::uint64_t time_ns);
// Copies the message, the metrics and the time of their change.
void copy_description(const VersionRow& from, VersionRow& to);

}  // namespace weft

// Makes events: checks what is asked for against the index and gives out numbers. Under the writer lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/events.h"
#include "index/tables.h"
#include "weft/content.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Errc::exists or invalid when the model's name would hide another's, Errc::not_found for a parent that is not live.
// The first gives what is said of the version: all but its numbers.
Result<VersionRow> plan_version(Txn& txn, const PublishRequest& request, const Digest& manifest);
Result<PublishEvent> plan_publish(Txn& txn, const PublishRequest& request, const Digest& manifest,
                                  std::vector<PackId> packs);
// An empty number deletes the tag. Errc::not_found. Changes that are so already are left out.
using TagWish = std::pair<std::string, std::optional<std::uint64_t>>;
Result<TagsEvent> plan_tags(Txn& txn, std::string_view model, const std::vector<TagWish>& wishes);
Result<RemovalEvent> plan_removal(Txn& txn, std::string_view model, std::uint64_t number);

// The live version of that number. Errc::not_found, with what was asked for.
Result<VersionRow> live_version(Txn& txn, std::string_view model, std::uint64_t number);
// The newest live version, if it has this content.
Result<std::optional<VersionRow>> newest_with(Txn& txn, std::string_view model, const Digest& manifest);

}  // namespace weft

// The effects of an event on names: models and their directories, listings, tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/events.h"
#include "index/tables.h"
#include "weft/result.h"

namespace weft {

// Creates the model of a publish if it is new, shows it in listings, and advances its counters.
Status advance_model(Txn& txn, const PublishEvent& event);
// Counts a version of the model that becomes live at this time, shows the model in listings, and stores its row.
Status add_live(Txn& txn, ModelRow model, const VersionRow& version, std::uint64_t time_ns);
Status hide_model(Txn& txn, const ModelRow& model, std::uint64_t time_ns);  // after its last live version is removed
void note_change(ModelRow& model, std::uint64_t time_ns);                   // after a change of the model

Status set_tags_of(Txn& txn, const PublishEvent& event);
// The caller must store `model` afterwards: it counts the tags.
Status set_tag(Txn& txn, ModelRow& model, const TagRow& tag);
Status delete_tag(Txn& txn, ModelRow& model, std::string_view name);
// tags_of() returns the tags that lead to a version, sorted by name; delete_tags_of() deletes them.
Result<std::vector<std::string>> tags_of(Txn& txn, ModelId model, std::uint64_t number);
Status delete_tags_of(Txn& txn, ModelRow& model, std::uint64_t number);

}  // namespace weft

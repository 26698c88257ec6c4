// The part of an event that is about names: models and their directories, what a listing shows, tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/events.h"
#include "index/tables.h"
#include "weft/result.h"

namespace weft {

// The model of a publish: made, shown, and its numbers counted.
Status advance_model(Txn& txn, const PublishEvent& event);
Status hide_model(Txn& txn, const ModelRow& model, std::uint64_t time_ns);  // it has no live version any more
void note_change(ModelRow& model, std::uint64_t time_ns);                   // a publish, a tag or a removal

Status set_tags_of(Txn& txn, const PublishEvent& event);
// The caller stores the model's row afterwards: it counts the tags.
Status set_tag(Txn& txn, ModelRow& model, const TagRow& tag);
Status delete_tag(Txn& txn, ModelRow& model, std::string_view name);
// That lead to a version, by name; all of them are deleted.
Result<std::vector<std::string>> tags_of(Txn& txn, ModelId model, std::uint64_t number);
Status delete_tags_of(Txn& txn, ModelRow& model, std::uint64_t number);

}  // namespace weft

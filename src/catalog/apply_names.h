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
// Counts a version of this kind that becomes live in the model, shows the model in listings, and stores its row.
Status add_live(Txn& txn, ModelRow model, std::uint64_t number, VersionKind kind, std::uint64_t time_ns);
// Moves a model to the event's name, in listings too. `tick`: of the lineage clock.
Status rename_model(Txn& txn, ModelRow model, const RenameEvent& event, std::uint64_t tick);
Status raise_former(Txn& txn, const NumberFloor& floor);  // no effect if no model was renamed from this name
Status hide_model(Txn& txn, const ModelRow& model, std::uint64_t time_ns);  // after its last live version is removed
// Marks the numbers between the model's next one and `number` as lost: a lost part of the journal may have used them.
Status skip_numbers(Txn& txn, const ModelRow& model, std::uint64_t number);
void note_change(ModelRow& model, std::uint64_t time_ns);  // after any change of it

// The facts of the event that changes a tag, for the row of `tag_moves`.
struct TagCause {
  std::uint64_t sequence = 0;
  std::uint64_t time_ns = 0;
  const Author& by;
  RegistryStamp stamp = {};
};

Status set_tags_of(Txn& txn, const PublishEvent& event);
// The caller must store `model` afterwards: it counts the tags. Number 0 deletes the tag.
Status set_tag(Txn& txn, ModelRow& model, const TagChange& change, const TagCause& cause);
// tags_of() returns the tags that lead to a version, sorted by name; delete_tags_of() deletes them.
Result<std::vector<std::string>> tags_of(Txn& txn, ModelId model, std::uint64_t number);
Status delete_tags_of(Txn& txn, ModelRow& model, std::uint64_t number, const TagCause& cause);

}  // namespace weft

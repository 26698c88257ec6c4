// What an event does to the index. One function an event, the same for a fresh commit, a replay and a rebuild.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "diskformat/events.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "packs/blob_index.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// The first publish that had a tensor view.
struct FirstView {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
};

struct PublishInput {
  const VersionContent* content = nullptr;  // none: a rebuild could not read it, or it is reaped
  bool reaped = false;                      // the version is removed and its content given back
  std::span<const NewBlob> new_blobs;
  bool absent = false;  // blobs that the index lacks become rows without a place; false: they are refused
  bool own = false;     // this node is its publisher, by a registry
  // Rebuild: where a view first appeared, by inode; and the count of its blobs that are in no pack here.
  const std::unordered_map<Ino, FirstView>* first_views = nullptr;
  std::uint64_t* missing_extents = nullptr;
};

// Returns the bytes of blobs that the index did not have. A version that has taken its content already (taking.h) gets
// none again.
Result<std::uint64_t> apply_publish(Txn& txn, const PublishEvent& event, const PublishInput& input);
Status apply_tags(Txn& txn, const TagsEvent& event);
// Of a version that is not bare any more, or removed and reaped, it changes nothing.
Status apply_adoption(Txn& txn, const AdoptionEvent& event, const PublishInput& input);
Status apply_note(Txn& txn, const NoteEvent& event);
std::string_view note_name(VersionNote note);  // in the index (tables.h)
// `content` of the version; not looked at when is_incomplete(), when it is reaped, or for no steps. So many steps of
// what it held are given back and noted (giving_back.h); kAllHeld: all, without a note; nothing: as a removal does.
Status apply_removal(Txn& txn, const RemovalEvent& event, const VersionContent* content,
                     std::optional<std::uint64_t> given_back = {});

// What a rebuild decided: numbers go on behind what may have been given.
Status apply_repair(Txn& txn, const RepairEvent& event);
Status raise_counters(Txn& txn, const Counters& floors);  // next numbers, to these at least
// Numbers below the model's next that no version has say so.
Status fill_numbers(Txn& txn, const ModelRow& model);

// Rows for these blobs, dead until versions hold them. Returns the bytes of those that the index did not have.
Result<std::uint64_t> add_blobs(Txn& txn, std::span<const NewBlob> blobs);
// Adds a blob's row, dead until a version holds it. Returns whether its bytes are new: a row that has a place stays as
// it is.
Result<bool> add_blob(Txn& txn, const ContentId& id, const BlobPlace& place);

// Its bytes are here no more: absent where somebody needs it, else unknown.
Status forget_place(Txn& txn, const FoundBlob& blob);

Status mark_dead(Txn& txn, Bytes blob_key);
Status count_revision(Txn& txn, std::uint64_t revision);  // of the registry, from now on
Status bump_sequence(Txn& txn);

}  // namespace weft

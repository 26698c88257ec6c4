// Applies journal events to the index: one function per event, the same for a fresh commit, a replay and a rebuild.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "diskformat/events.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "packs/blob_index.h"
#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The first publish that contained a tensor view.
struct FirstView {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
};

struct PublishInput {
  const VersionContent* content = nullptr;  // null: a rebuild could not read the manifest, or `reaped`
  bool reaped = false;                      // the version is removed, and gc has released its content
  std::span<const NewBlob> new_blobs;
  bool absent = false;  // adds blobs that the index lacks as absent ones; false: Errc::invalid for them
  bool own = false;     // a registry names this node as the publisher
  // For a rebuild: the first publish of each view, by inode, and a counter of blobs that no local pack has.
  const std::unordered_map<Ino, FirstView>* first_views = nullptr;
  std::uint64_t* missing_extents = nullptr;
};

// Adds a version. Returns the total size of blobs new to the index. Skips the content if the version has taken it
// already (attach.h).
Result<std::uint64_t> apply_publish(Txn& txn, const PublishEvent& event, const PublishInput& input);
Status apply_tags(Txn& txn, const TagsEvent& event);
// Gives a bare version its content. Only counts numbers if the version is not bare, or was removed and reaped.
Status apply_adoption(Txn& txn, const AdoptionEvent& event, const PublishInput& input);
Status apply_note(Txn& txn, const NoteEvent& event);
// Replaces message and metrics. No effect on a removed version.
Status apply_description(Txn& txn, const DescriptionEvent& event);
// Gives the model its new name; the former one is free, and its numbers stay used.
Status apply_rename(Txn& txn, const RenameEvent& event);
std::string_view note_name(VersionNote note);  // the note's name in the index (tables.h)
// Removes a version. `content` is not used if the version is_incomplete() or reaped, or if `released` is 0. The first
// `released` steps of its content are released and noted (release.h). kAllHeld releases all of them without a
// note; without a value, the size of the version decides between all and none. A later removal of a removed version
// only replaces the time, the tags and the reason of the former one.
Status apply_removal(Txn& txn, const RemovalEvent& event, const VersionContent* content,
                     std::optional<std::uint64_t> released = {});

Status apply_purge(Txn& txn, const PurgeEvent& event);  // no effect on a live version
// Applies the decisions of a rebuild: raises the counters above every number that may have been used.
Status apply_repair(Txn& txn, const RepairEvent& event);
Status raise_counters(Txn& txn, const Counters& floors);  // raises the next numbers to at least these
// Marks the version numbers below the model's next one that no version has as lost.
Status fill_numbers(Txn& txn, const ModelRow& model);

// Adds rows for these blobs, dead until a version holds them. Returns the total size of blobs new to the index.
Result<std::uint64_t> add_blobs(Txn& txn, std::span<const NewBlob> blobs);
// Adds a blob's row, dead until a version holds it, or gives an absent blob its place. Returns false if nothing
// changed: the index has the blob with a place, or `place` is empty.
Result<bool> add_blob(Txn& txn, const ContentId& id, const BlobPlace& place);

// Records that the bytes are lost: the blob becomes absent if a version holds it, else its row is deleted.
Status forget_place(Txn& txn, const FoundBlob& blob);

// Parts of events that other files apply (undelete.h).
//
// Records the numbers of an event and of what it adds.
Status count_sequence(Txn& txn, std::uint64_t sequence, std::uint64_t revision = 0);
Status count_local(Txn& txn, const LocalRow& local);
Result<std::uint64_t> tick(Txn& txn);                       // returns the next tick of the lineage clock
Status put_revisions(Txn& txn, const VersionRow& version);  // so that a revision of a live version finds it
Status put_local(Txn& txn, const VersionRow& version, const LocalRow& local);  // of a version that had no local row

// Returns the largest live number of the model below `number`; 0: none.
Result<std::uint64_t> latest_below(Txn& txn, const ModelRow& model, std::uint64_t number);

Status mark_dead(Txn& txn, Bytes blob_key);
Status count_revision(Txn& txn, std::uint64_t revision);  // stores the registry's revision
Status bump_sequence(Txn& txn);

}  // namespace weft

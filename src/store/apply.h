// What an event does to the index. One function an event, the same for a fresh commit, a replay and a rebuild.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/events.h"
#include "store/packs.h"
#include "store/tables.h"
#include "weft/result.h"
#include "weft/store.h"

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
  // Rebuild: where a view first appeared, by inode; extents that are in no pack are counted rather than refused.
  const std::unordered_map<Ino, FirstView>* first_views = nullptr;
  std::uint64_t* missing_extents = nullptr;
};

// Returns the bytes of blobs that the index did not have.
Result<std::uint64_t> apply_publish(Txn& txn, const PublishEvent& event, const PublishInput& input);
Status apply_tags(Txn& txn, const TagsEvent& event);
// `content` of the version; not looked at when is_incomplete().
Status apply_removal(Txn& txn, const RemovalEvent& event, const VersionContent* content);

// What a rebuild decided: numbers go on behind what may have been given.
Status apply_repair(Txn& txn, const RepairEvent& event);
Status raise_counters(Txn& txn, const Counters& floors);  // next numbers, to these at least
// Numbers below the model's next that no version has say so.
Status fill_numbers(Txn& txn, const ModelRow& model);

// A live version whose content a rebuild could not read: it has no holders, so gc must not judge by them.
Result<bool> is_incomplete(Txn& txn, VersionId version);
Result<bool> any_incomplete(Txn& txn);

// A blob's row, dead until somebody holds it. Returns whether it is new; one that is there stays where it is. Without a
// key it gets the next free one of its hash.
Result<bool> add_blob(Txn& txn, const ContentId& id, const BlobPlace& place, std::string key = {});

Status mark_dead(Txn& txn, Bytes blob_key);
Status bump_sequence(Txn& txn);

}  // namespace weft

// The life of a version on this node. Each state is a set of facts in the index: the version's local row, and notes in
// the table `meta` (tables.h). The table below says which facts stand together and which states follow each other.
//
//   state      local row  notes that stand         notes that may stand            next
//   absent     no         -                        -                               attaching, bare, whole
//   attaching  no         kAttaching               -                               whole, absent
//   bare       yes        kIncomplete              kUnsaved, kPinned, kInMemory    whole, unreaped
//   whole      yes        -                        kUnsaved, kPinned, kInMemory    unreaped, releasing
//   unreaped   yes        kUnreaped                -                               absent, bare, whole
//   releasing  yes        kUnreaped, kReleasing   -                               absent, whole
//
// absent: not published yet, or removed and reaped; a rebuild also skips the content of versions that are removed
// later. attaching: a large publish adds the content (catalog/attach.h). bare: live, without content. whole: live.
// unreaped: removed; readers may have it open. releasing: removed and large; gc releases its content in steps
// (catalog/release.h). An undelete leads back: from unreaped and releasing to the state before the removal, and in a
// cluster, if gc of this node has reaped the version, from absent to bare.
//
// The other notes of `meta` are no facts about a version on this node, so that no state and no transition depends on
// them. kPurged is a fact about a removed version on all nodes. The ids of the others do not name versions. kCached and
// kPromoted have the id of a pack, which any number of versions share; so do the notes of gc_queue.h. kMemoryUsed has
// id 0. It says about the store that some version had kInMemory, and outlives that version. set_mark() and clear_mark()
// refuse all of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "index/env.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

enum class VersionState : std::uint8_t { absent, attaching, bare, whole, unreaped, releasing };

// Errc::corrupt: the facts are those of no state.
Result<VersionState> state_of(Txn& txn, VersionId version);
// Writes the notes of the new state and erases all others. The caller changes the local row afterwards, in the same
// transaction. Returns the previous state. Errc::corrupt: the new state does not follow it.
Result<VersionState> enter(Txn& txn, VersionId version, VersionState state);
// Sets one of the notes that may stand. No effect on an absent version. Errc::corrupt: the state does not allow it.
Status set_mark(Txn& txn, VersionId version, std::string_view note);
// Erases a note that set_mark() can set, if the version has it. Errc::corrupt: set_mark() sets no such note.
Status clear_mark(Txn& txn, VersionId version, std::string_view note);
// Sets or erases kPurged, with the time of the purge, whatever the state is.
Status set_purged(Txn& txn, VersionId version, std::uint64_t time_ns);
Status clear_purged(Txn& txn, VersionId version);
// Records the progress of a version in `state`: the steps taken (attaching) or given back (releasing). Errc::corrupt:
// the version is in another state, or this one has no steps.
Status set_steps(Txn& txn, VersionId version, VersionState state, std::uint64_t steps);

}  // namespace weft

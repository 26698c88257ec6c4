// What a publish and a removal do to the index of architectures.
//
// An item is *open* when every input of it is in two classes or more; only open items of a class have rows, so that a
// class costs about as many as it shares with others, whatever its size. This loses nothing: where a query and a class
// agree on an item, all its inputs are in both; if one of these is in no other class, the walk down from the inputs
// meets that class, alone, at the first such item, and looks at it as a whole. Which rows there are follows from the
// live versions alone, not from the order in which they came.
#pragma once

#include <span>

#include "index/tables.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

Status add_architecture(Txn& txn, const VersionRow& version, std::span<const ArchItem> items);
// Changes nothing: reads in a transaction of its own what add_architecture() will. Pages that are not in memory are
// waited for here, with nobody waiting for the writer, rather than there. The id need not be that which the version
// gets.
Status foresee_architecture(Txn& txn, const VersionRow& version, std::span<const ArchItem> items);
Status remove_architecture(Txn& txn, const VersionRow& version);  // fine when it has none

}  // namespace weft

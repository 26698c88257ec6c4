// Updates the index of architectures when a version is published or removed.
//
// An item is *open* if each of its inputs occurs in two or more classes. Only the open items of a class have rows, so a
// class costs about as many rows as it shares items with other classes, whatever its size. No match is lost: a query
// and a class that share an item also share all its inputs. If one of those inputs occurs in no other class, the walk
// of a query (query.h) meets that class as the only owner of the first such item, and compares the class as a whole.
// The set of rows depends on the live versions only, not on the order of their publishes.
#pragma once

#include <span>

#include "index/tables.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

Status add_architecture(Txn& txn, const VersionRow& version, std::span<const ArchItem> items);
// Reads the pages that add_architecture() will use, in an earlier transaction, and changes nothing. Page faults then
// happen here, where no thread waits for the writer. `version.id` need not be the final id.
Status foresee_architecture(Txn& txn, const VersionRow& version, std::span<const ArchItem> items);
Status remove_architecture(Txn& txn, const VersionRow& version);  // no error if it has none

}  // namespace weft

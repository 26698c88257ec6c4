// A removed version becomes live again (index/version_life.h). Its content comes back as it was if gc has not begun to
// release its inodes. If gc has, the version is bare afterwards, with other inode numbers. Under the writer lock.
#pragma once

#include <cstdint>

#include "catalog/apply.h"
#include "diskformat/events.h"
#include "index/env.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Plans the undelete of a removed version, later than its removal. `content`: null if its manifest cannot be read.
// `tree_nodes`: inode numbers to reserve if gc has released the content. Errc::corrupt: the manifest is needed and
// cannot be read, or does not fit the index.
Result<UndeleteEvent> plan_undelete(Txn& txn, const VersionRow& version, const VersionContent* content,
                                    std::uint64_t tree_nodes, std::uint64_t time_ns);
// An undelete of a live version only has a later time. `input.reaped`: the version is removed again later, and gc has
// released its content. Without content the version is bare, whatever the event says.
Status apply_undelete(Txn& txn, const UndeleteEvent& event, const PublishInput& input);

}  // namespace weft

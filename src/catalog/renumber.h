// A version gets another number: a registry that had lost history gave its number to another version too. Id, inode
// numbers and content stay. Under the writer lock.
#pragma once

#include "diskformat/events.h"
#include "index/env.h"
#include "weft/result.h"

namespace weft {

// Gives the version its new number, which no version has. Its tags and the parents of its children follow. The former
// number is free for another version.
Status apply_renumber(Txn& txn, const RenumberEvent& event);

}  // namespace weft

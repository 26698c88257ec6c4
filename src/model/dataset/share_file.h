// The .npy file of a share of a container's rows.
#pragma once

#include <memory>

#include "model/dataset_numbers.h"
#include "model/row_shares.h"
#include "weft/dataset_tree.h"

namespace weft {

// `name` has a rank. The file needs no table any more.
MadeFile make_share_file(const RowShares& shares, const ShareName& name);

}  // namespace weft

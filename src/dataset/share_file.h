// Makes the .npy file of a share of a container's rows.
#pragma once

#include <memory>

#include "dataset/dataset_numbers.h"
#include "dataset/row_shares.h"
#include "weft/dataset_tree.h"

namespace weft {

// `name` has a rank. The file stays valid without the table.
MadeFile make_share_file(const RowShares& shares, const ShareName& name);

}  // namespace weft

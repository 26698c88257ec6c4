// Brings removed versions back while gc has not freed their content. Both hold the version like a reader, so that gc
// leaves it from the check of its content to the commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

// As Store::undelete(), of a store without a cluster.
Result<UndeletedVersion> undelete(StoreParts& parts, std::string_view model, std::uint64_t number, const Author& by);
// As RegistryMirror::prepare_undelete().
Result<std::unique_ptr<PreparedUndelete>> prepare_undelete(StoreParts& parts, std::string_view model,
                                                           std::uint64_t number);

}  // namespace weft

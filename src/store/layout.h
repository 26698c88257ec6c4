// The directory that is a store: making it, and telling whether a path is one.
#pragma once

#include <string>

#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// As Store::create.
Status create_store(const std::string& path, const CreateOptions& options);
// STORE/weft-store, and that the store lies where one can. Errors as Store::open.
Result<StoreInfo> read_identity(const std::string& path);
// Errc::unsupported for a store of an older format, whose index this weft does not read; a rebuild makes it one of ours
// and then says so in its identity.
Status check_format(const std::string& path, const StoreInfo& info);
Status upgrade_identity(const std::string& path, StoreInfo info);

}  // namespace weft

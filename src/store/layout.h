// The directory that is a store: making it, and telling whether a path is one.
#pragma once

#include <string>

#include "base/sys.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// As Store::create.
Status create_store(const std::string& path, const CreateOptions& options);
// The file weft-store, locked shared by who has the store open, exclusively by who takes it away. Errc::not_found.
Result<Fd> lock_identity(const std::string& path, const Patience& patience);
// The directory that is or will be a store, locked by who makes it or takes it away; made where it is not there.
Result<Fd> lock_maker(const std::string& path, const Patience& patience);
// The parts of making one: that nothing is there; all but the file weft-store; that, the last step.
Status check_unused(const std::string& path);
Status lay_out(const std::string& path);
Status make_store(const std::string& path);
Status remove_store(const std::string& path);  // leaves the directory
// STORE/weft-store, and that the store lies where one can. Errors as Store::open.
Result<StoreInfo> read_identity(const std::string& path);

}  // namespace weft

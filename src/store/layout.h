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
// Errc::not_found where there is no store.
Status check_is_store(const std::string& path);
// STORE/maker.lock, locked by the process that makes the store or takes it away. The directory is made when it is not
// there.
Result<Fd> lock_maker(const std::string& path, const Patience& patience);
Status remove_maker_lock(const std::string& path);  // by its holder, when there is no store after all
// The parts of making one: that nothing is there; all but the file weft-store; that, the last step.
Status check_unused(const std::string& path);
Status lay_out(const std::string& path);
Status make_store(const std::string& path);
Status remove_store(const std::string& path);  // leaves the directory
// STORE/weft-store, or else its copy in journal/, and that the store lies where one can. Errors as Store::open.
Result<StoreInfo> read_identity(const std::string& path);
// The same, for a rebuild. If both files are damaged or gone and the journal has records, the store gets a new id: no
// content depends on the old one.
Result<StoreInfo> recover_identity(const std::string& path);
// Which of the two files are damaged or gone; mend_identity() writes these again.
Result<std::vector<std::string>> damaged_identities(const std::string& path);
Result<std::vector<std::string>> mend_identity(const std::string& path, const StoreInfo& info);

}  // namespace weft

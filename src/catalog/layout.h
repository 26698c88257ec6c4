// The directory of a store: creates it, opens it, and checks whether a path is a store.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Opens the store's directory, from which all paths below it are reached, with the owner rule of beneath.h.
// Errc::not_found: there is no store. Errc::permission: this process is root, and other users than the store's owner
// can write to the store.
Result<SafePath> open_store_directory(const std::string& path);
// Like open_store_directory(), for a rebuild: also accepts a directory in which both identity files are missing.
Result<SafePath> open_damaged_store(const std::string& path);

// See Store::create.
Status create_store(const std::string& path, const CreateOptions& options);
// Errc::not_found if there is no store.
Status check_is_store(const SafePath& path);
// The directory and its locked maker.lock. A process that creates or deletes the store holds the lock. lock_maker()
// creates the directory if it is missing. Errc::permission as open_store_directory().
struct Maker {
  SafePath directory;
  Fd lock;
};
Result<Maker> lock_maker(const std::string& path, const Patience& patience);
Status remove_maker_lock(const SafePath& path);  // by its holder, if there is no store
// The steps of a creation. check_unused() checks that the directory is empty except for leftovers of a killed creation,
// lay_out() creates everything but the file weft-store, and make_store() writes that file last.
Status check_unused(const SafePath& path);
// Returns the names in the directory of a store, without the lock of its creation, and without lost+found, which ext4
// has in the root of every file system.
Result<std::vector<std::string>> own_entries(const SafePath& path);
Status lay_out(const SafePath& path);
Status make_store(const SafePath& path);
Status remove_store(const SafePath& path);  // keeps the directory itself
// A store's identity, and the file it was read from: STORE/weft-store, or else the copy in journal/.
struct StoreIdentity {
  StoreInfo info;
  std::string file;  // "" for a new identity
};
// Reads the identity, and checks that the file system is suitable. Errors as Store::open.
Result<StoreIdentity> read_identity(const SafePath& path);
// Like read_identity(), for a rebuild. If both files are damaged or missing and the journal has records, returns a new
// identity: no content depends on the old id.
Result<StoreIdentity> recover_identity(const SafePath& path);
// Returns which of the two files are damaged or missing. `whole` is known to be intact and is not read; "" if neither
// is. mend_identity() rewrites these files from `identity` and returns them.
Result<std::vector<SafePath>> damaged_identities(const SafePath& path, const std::string& whole = {});
Result<std::vector<SafePath>> mend_identity(const SafePath& path, const StoreIdentity& identity);

// Returns the name of a network or user-space file system with this statfs f_type; nothing for any other. A store needs
// a local file system: its index is a shared memory map, and all processes must see its locks.
std::optional<std::string_view> unsuitable_file_system(unsigned long f_type);

// Errc::unsupported, with the name, if `directory` is on such a file system. `directory` must be a root, not a path
// below.
Status check_file_system(const SafePath& directory);

// Reserves disk space for operations that free space: on a full disk, the removal of a version still needs a journal
// record and index pages. Both functions are best effort and need the writer lock. STORE/index/spare takes 4 MiB, less
// on small disks.
void make_spare(const SafePath& store_path);
// Frees the reserved space. False if there was none.
bool release_spare(const SafePath& store_path);

}  // namespace weft

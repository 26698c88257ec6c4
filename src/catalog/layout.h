// The directory that is a store: making it, opening it, and telling whether a path is one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// The store's directory, by which everything below it is reached: with the owner rule of beneath.h. Errc::not_found
// where there is no store. Errc::permission: this is root, and users other than the store's owner can write to it.
Result<SafePath> open_store_directory(const std::string& path);
// The same for a rebuild, which also takes a directory whose files of the identity are both gone.
Result<SafePath> open_damaged_store(const std::string& path);

// As Store::create.
Status create_store(const std::string& path, const CreateOptions& options);
// Errc::not_found where there is no store.
Status check_is_store(const SafePath& path);
// The directory, and its maker.lock, locked by the process that makes the store or takes it away. The directory is made
// when it is not there. Errc::permission as open_store_directory().
struct Maker {
  SafePath directory;
  Fd lock;
};
Result<Maker> lock_maker(const std::string& path, const Patience& patience);
Status remove_maker_lock(const SafePath& path);  // by its holder, when there is no store after all
// The parts of making one: that nothing is there; all but the file weft-store; that, the last step.
Status check_unused(const SafePath& path);
Status lay_out(const SafePath& path);
Status make_store(const SafePath& path);
Status remove_store(const SafePath& path);  // leaves the directory
// What a store says of itself, and in which file: STORE/weft-store, or else its copy in journal/.
struct StoreIdentity {
  StoreInfo info;
  std::string file;  // "" of one that is made anew
};
// Checks also that the store lies where one can. Errors as Store::open.
Result<StoreIdentity> read_identity(const SafePath& path);
// The same, for a rebuild. If both files are damaged or gone and the journal has records, the store gets a new id: no
// content depends on the old one.
Result<StoreIdentity> recover_identity(const SafePath& path);
// Which of the two files are damaged or gone; mend_identity() writes these again, and reads the other file alone.
Result<std::vector<std::string>> damaged_identities(const SafePath& path);
Result<std::vector<std::string>> mend_identity(const SafePath& path, const StoreIdentity& identity);

// On which file systems a store may lie: an index is a shared memory map, and locks must be seen by all who use it. The
// name of a network or user-space file system with this statfs f_type; nothing for any other.
std::optional<std::string_view> unsuitable_file_system(unsigned long f_type);

// Errc::unsupported, by name, when `directory`, that of a Beneath, lies on one.
Status check_file_system(const SafePath& directory);

// Room that is kept for what makes room: on a disk that others have filled, removing a version still needs a record in
// the journal and pages of the index. Both best effort, under the writer lock. STORE/index/spare takes 4 MiB, less on
// small disks.
void make_spare(const SafePath& store_path);
// Gives the room to whoever asks next. False: there was none.
bool release_spare(const SafePath& store_path);

}  // namespace weft

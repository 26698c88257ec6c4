// Files of a setup, read and written as text.
#pragma once

#include <sys/types.h>

#include <string>

#include "weft/result.h"

namespace weft::setup {

// Errc::invalid: more than limits::kSetupFileMax bytes.
Result<std::string> read_setup_file(const std::string& path);
// As above, for a secret. Errc::permission: others can read it, or it is another user's.
Result<std::string> read_private_file(const std::string& path);
// Creates a file, with this mode from the first moment on, and syncs it. Errc::exists.
Status write_new_file(const std::string& path, mode_t mode, const std::string& content);

}  // namespace weft::setup

// What every entry point does around a parser.
#pragma once

#include <string_view>

#include "weft/format.h"

namespace weft {

// The error with "WHERE: " before its message, unless it names `where` already (a source that failed to read does).
Error locate(std::string_view where, Error error);

// Is it about the file's bytes, rather than about reading them?
bool is_malformed(const Error& error);

// Errc::invalid when the file is a Git LFS pointer: the few lines that stand for a file not yet downloaded.
Status refuse_lfs_pointer(ByteSource& source);

}  // namespace weft

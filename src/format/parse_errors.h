// Steps around a parser that every entry point needs.
#pragma once

#include <string_view>

#include "weft/model/format.h"

namespace weft {

// Puts "WHERE: " before the error's message, unless it starts with `where` already (as a failed read of a source does).
Error locate(std::string_view where, Error error);

// True if the error is about the file's bytes, and not about reading them.
bool is_malformed(const Error& error);

}  // namespace weft

// Commands that only a daemon can carry out.
#pragma once

#include <string_view>

#include "cli/context.h"

namespace weft {

// Asks the store's daemon; Errc::unreachable when none runs. Its progress is shown.
Result<JsonValue> ask_with_progress(const Context& context, std::string_view request, std::string_view body);

}  // namespace weft

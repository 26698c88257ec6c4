// Commands that only a daemon can carry out.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/shared/context.h"

namespace weft {

// What a daemon tells of its progress ("phase", "total", "done"), shown here.
class ShownProgress {
 public:
  explicit ShownProgress(Progress& progress) : progress_(progress) {}
  Status show(const JsonValue& event);

 private:
  Progress& progress_;
  std::uint64_t done_ = 0;
};

// Asks the store's daemon; Errc::unreachable when none runs. Its progress is shown.
Result<JsonValue> ask_with_progress(const Context& context, std::string_view request, std::string_view body);

}  // namespace weft

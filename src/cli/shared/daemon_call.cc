#include "cli/shared/daemon_call.h"

#include <fmt/core.h>

#include "daemon_api/control_messages.h"

namespace weft {

control::OnEvent shown_by(Progress& progress) {
  return
      [&progress, done = std::uint64_t{0}](const control::Message& event, const control::SendMore&) mutable -> Status {
        WEFT_TRY(const ProgressEvent now, decode_fields<ProgressEvent>(event.body));
        progress.phase(now.held_by.empty() ? now.phase : fmt::format("{}: {}", now.held_by, now.phase));
        progress.total(now.total);
        if (now.done > done) progress.advance(now.done - std::exchange(done, now.done));
        return {};
      };
}

}  // namespace weft

#include "cli/shared/daemon_call.h"

#include <utility>

#include "daemon_api/control_messages.h"

namespace weft {

Status ShownProgress::show(const JsonValue& event) {
  WEFT_TRY(const ProgressEvent progress, decode_fields<ProgressEvent>(event));
  progress_.phase(progress.phase);
  progress_.total(progress.total);
  if (progress.done > done_) progress_.advance(progress.done - std::exchange(done_, progress.done));
  return {};
}

Result<JsonValue> ask_with_progress(const Context& context, control::Client& daemon, std::string_view name,
                                    std::string_view body, Progress& progress) {
  ShownProgress shown(progress);
  control::CallOptions options;
  options.on_event = [&](const control::Message& event, const control::SendMore&) { return shown.show(event.body); };
  WEFT_TRY(control::Answer answer, context.ask(daemon, name, body, std::move(options)));
  return std::move(answer.body);
}

}  // namespace weft

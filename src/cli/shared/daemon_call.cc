#include "cli/shared/daemon_call.h"

#include <utility>

namespace weft {
Status ShownProgress::show(const JsonValue& event) {
  WEFT_TRY(const std::string phase, event.text("phase"));
  WEFT_TRY(const std::uint64_t total, event.number("total"));
  WEFT_TRY(const std::uint64_t done, event.number("done"));
  progress_.phase(phase);
  progress_.total(total);
  if (done > done_) progress_.advance(done - std::exchange(done_, done));
  return {};
}

Result<JsonValue> ask_with_progress(const Context& context, std::string_view request, std::string_view body) {
  WEFT_TRY(const auto daemon, context.daemon());
  if (!daemon) return Error{Errc::unreachable, fmt::format("{}: no daemon runs for this store", context.store_path())};
  ProgressBar bar = context.progress();
  ShownProgress shown(bar);
  control::CallOptions options;
  options.on_event = [&](const control::Message& event, const control::SendMore&) {
    return event.body.find("phase") != nullptr ? shown.show(event.body) : Status();
  };
  WEFT_TRY(control::Answer answer, context.ask(*daemon, request, body, std::move(options)));
  return std::move(answer.body);
}

}  // namespace weft

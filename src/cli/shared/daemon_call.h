// Sends requests to the store's daemon, whose bodies and answers have fields().
#pragma once

#include <string_view>
#include <utility>

#include "base/json_fields.h"
#include "cli/shared/context.h"

namespace weft {

// Returns a handler that shows the ProgressEvents of one request.
control::OnEvent shown_by(Progress& progress);

template <class Answer, class Request>
Result<Answer> call_daemon(const Context& context, control::Client& daemon, std::string_view name,
                           const Request& request, control::OnEvent on_event = {}) {
  control::CallOptions options;
  options.on_event = std::move(on_event);
  WEFT_TRY(const control::Answer answer, context.ask(daemon, name, encode_fields(request), std::move(options)));
  return decode_fields<Answer>(answer.body);
}

// Sends a request that only a daemon can execute, and shows its progress. Errc::unreachable: no daemon runs.
template <class Answer, class Request>
Result<Answer> call_daemon(const Context& context, std::string_view name, const Request& request) {
  WEFT_TRY(const auto daemon, context.need_daemon());
  ProgressBar bar = context.progress();
  return call_daemon<Answer>(context, *daemon, name, request, shown_by(bar));
}

}  // namespace weft

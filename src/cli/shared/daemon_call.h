// Requests to the daemon of the store.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json_fields.h"
#include "cli/shared/context.h"

namespace weft {

// What a daemon tells of its progress, shown here.
class ShownProgress {
 public:
  explicit ShownProgress(Progress& progress) : progress_(progress) {}
  Status show(const JsonValue& event);

 private:
  Progress& progress_;
  std::uint64_t done_ = 0;
};

Result<JsonValue> ask_with_progress(const Context& context, control::Client& daemon, std::string_view name,
                                    std::string_view body, Progress& progress);

// As Context::ask, of messages with fields().
template <class Answer, class Request>
Result<Answer> call_daemon(const Context& context, control::Client& daemon, std::string_view name,
                           const Request& request, Progress& progress) {
  WEFT_TRY(const JsonValue answer, ask_with_progress(context, daemon, name, encode_fields(request), progress));
  return decode_fields<Answer>(answer);
}

// For what only a daemon can do: Errc::unreachable when none runs. Its progress is shown.
template <class Answer, class Request>
Result<Answer> call_daemon(const Context& context, std::string_view name, const Request& request) {
  WEFT_TRY(const auto daemon, context.need_daemon());
  ProgressBar bar = context.progress();
  return call_daemon<Answer>(context, *daemon, name, request, bar);
}

}  // namespace weft

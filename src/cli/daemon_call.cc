#include "cli/daemon_call.h"

#include <utility>

namespace weft {
namespace {

// What the daemon tells of its progress, shown here.
class Shown {
 public:
  explicit Shown(Progress& progress) : progress_(progress) {}

  Status show(const JsonValue& event) {
    if (event.find("phase") == nullptr) return {};
    WEFT_TRY(const std::string phase, event.text("phase"));
    WEFT_TRY(const std::uint64_t total, event.number("total"));
    WEFT_TRY(const std::uint64_t done, event.number("done"));
    progress_.phase(phase);
    progress_.total(total);
    if (done > done_) progress_.advance(done - std::exchange(done_, done));
    return {};
  }

 private:
  Progress& progress_;
  std::uint64_t done_ = 0;
};

}  // namespace

Result<JsonValue> ask_with_progress(const Context& context, std::string_view request, std::string_view body) {
  WEFT_TRY(const auto daemon, context.daemon());
  if (!daemon) return Error{Errc::unreachable, fmt::format("{}: no daemon runs for this store", context.store_path())};
  ProgressBar bar = context.progress();
  Shown shown(bar);
  control::CallOptions options;
  options.on_event = [&](const control::Message& event, const control::SendMore&) { return shown.show(event.body); };
  WEFT_TRY(control::Answer answer, context.ask(*daemon, request, body, std::move(options)));
  return std::move(answer.body);
}

}  // namespace weft

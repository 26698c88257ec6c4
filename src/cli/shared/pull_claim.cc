#include "cli/shared/pull_claim.h"

#include "daemon_api/control_messages.h"

namespace weft {

Result<std::unique_ptr<PullClaim>> PullClaim::take(const Context& context, const std::string& key) {
  WEFT_TRY(auto daemon, context.daemon());
  if (!daemon) return std::unique_ptr<PullClaim>();
  std::unique_ptr<PullClaim> claim(new PullClaim(context, std::move(daemon)));
  claim->asking_ = std::thread([&claim = *claim, key] { claim.ask(key); });
  WEFT_CHECK(claim->wait());
  return claim;
}

PullClaim::~PullClaim() {
  over_ = true;
  if (asking_.joinable()) asking_.join();
}

// The request lasts as long as the claim.
void PullClaim::ask(const std::string& key) {
  control::CallOptions options;
  options.cancelled = [this] { return over_ || context_.patience().cancelled(); };
  options.on_event = [this](const control::Message& message, const control::SendMore&) -> Status {
    WEFT_TRY(const ClaimEvent event, decode_fields<ClaimEvent>(message.body));
    if (!event.held && !context_.quiet)
      context_.note(fmt::format("{} pulls the same: waiting for it", printable(event.holder)));
    const std::lock_guard lock(mutex_);
    held_ = held_ || event.held;
    changed_.notify_all();
    return {};
  };
  const auto answer = daemon_->call("claim", encode_fields(ClaimRequest{key}), {}, options);
  const std::lock_guard lock(mutex_);
  ended_ = answer.ok() ? Error{Errc::internal, "weftd: the claim of the pull has ended"} : answer.error();
  changed_.notify_all();
}

Status PullClaim::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return held_ || ended_; });
  return held_ ? Status{} : Status{*ended_};
}

}  // namespace weft

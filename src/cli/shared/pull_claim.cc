#include "cli/shared/pull_claim.h"

#include <algorithm>

#include "base/text.h"

namespace weft {
namespace {

constexpr auto kNoteEvery = std::chrono::seconds(10);

std::string text_of(const ClaimEvent& claim) {
  const std::string since = claim.since_ns == 0 ? "" : fmt::format(" since {}", utc_time(claim.since_ns));
  return fmt::format("{} pulls the same{}", printable(claim.holder), since);
}

}  // namespace

Result<std::unique_ptr<PullClaim>> PullClaim::take(const Context& context, const std::string& key,
                                                   Clock::time_point until) {
  WEFT_TRY(auto daemon, context.daemon());
  if (!daemon) return std::unique_ptr<PullClaim>();
  std::unique_ptr<PullClaim> claim(new PullClaim(context, std::move(daemon)));
  claim->asking_ = std::thread([&claim = *claim, key] { claim.ask(key); });
  WEFT_CHECK(claim->wait(until));
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
    const std::lock_guard lock(mutex_);
    last_ = event;
    changed_.notify_all();
    return {};
  };
  const auto answer = daemon_->call("claim", encode_fields(ClaimRequest{key}), {}, options);
  const std::lock_guard lock(mutex_);
  ended_ = answer.ok() ? Error{Errc::internal, "weftd: the claim of the pull has ended"} : answer.error();
  changed_.notify_all();
}

Status PullClaim::wait(Clock::time_point until) {
  const auto begun = Clock::now();
  std::unique_lock lock(mutex_);
  for (auto next_note = begun; !last_.held && !ended_;) {
    const auto now = Clock::now();
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - begun).count();
    const bool is_waiting = !last_.holder.empty();
    if (is_waiting && now >= until)
      return Error{Errc::timed_out, fmt::format("{}: expected its end within {} s (--wait)", text_of(last_), waited)};
    if (is_waiting && now >= next_note) {
      if (!context_.quiet)
        context_.note(fmt::format("{}: waiting for it{}", text_of(last_),
                                  waited == 0 ? std::string() : fmt::format(" for {} s so far", waited)));
      next_note = now + kNoteEvery;
    }
    changed_.wait_until(lock, is_waiting ? std::min(until, next_note) : now + kNoteEvery);
  }
  return last_.held ? Status{} : Status{*ended_};
}

}  // namespace weft

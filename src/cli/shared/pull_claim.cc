#include "cli/shared/pull_claim.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr auto kNoteEvery = std::chrono::seconds(10);
constexpr auto kHolderPatience = std::chrono::seconds(10);  // with an answer of this node's daemon

std::string text_of(const ClaimEvent& claim) {
  const std::string since = claim.since_ns == 0 ? "" : fmt::format(" since {}", utc_time(claim.since_ns));
  return fmt::format("{} pulls the same{}", printable(claim.holder), since);
}

}  // namespace

// Asks another node by the daemon what its pull has received.
class PullClaim::Holder final : public PulledFiles {
 public:
  Holder(control::Client& daemon, std::string node) : daemon_(daemon), node_(std::move(node)) {}

  Result<PulledPart> read(const PulledAsk& ask) override {
    control::CallOptions options;
    options.patience = kHolderPatience;
    WEFT_TRY(const auto answer, daemon_.call("pulled", encode_fields(PulledRequest{node_, ask}), {}, options));
    WEFT_TRY(const auto sizes, decode_fields<PulledAnswer>(answer.body));
    if (answer.fds.empty()) return Error{Errc::invalid, "weftd: bytes of a pull without a file"};
    PulledPart part;
    part.got.resize(sizes.pieces);
    part.bytes.resize(sizes.bytes);
    const auto state = std::as_writable_bytes(std::span(part.got));
    const int file = answer.fds.front().get();
    WEFT_CHECK(read_exact(file, 0, state, "bytes of a pull"));
    WEFT_CHECK(read_exact(file, state.size(), part.bytes, "bytes of a pull"));
    return part;
  }

 private:
  control::Client& daemon_;
  const std::string node_;
};

Result<std::unique_ptr<PullClaim>> PullClaim::take(const Context& context, const std::string& key,
                                                   Clock::time_point until, const OnWait& on_wait) {
  WEFT_TRY(auto daemon, context.daemon());
  if (!daemon) return std::unique_ptr<PullClaim>();
  std::unique_ptr<PullClaim> claim(new PullClaim(context, std::move(daemon)));
  claim->asking_ = std::thread([&claim = *claim, key] { claim.ask(key); });
  WEFT_CHECK(claim->wait(until, on_wait));
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

bool PullClaim::is_lost() {
  const std::lock_guard lock(mutex_);
  return last_.held && ended_;
}

std::unique_ptr<PulledFiles> PullClaim::last_holder() {
  const std::lock_guard lock(mutex_);
  if (!last_.held || last_.node.empty()) return nullptr;
  return std::make_unique<Holder>(*daemon_, last_.node);
}

// Returns when the next turn is. The caller does not hold mutex_.
PullClaim::Clock::time_point PullClaim::pass_turn(const ClaimEvent& line, Clock::time_point until,
                                                  const OnWait& on_wait) {
  Holder holder(*daemon_, line.node);
  return on_wait(holder, [this, &line, until] {
    const std::lock_guard lock(mutex_);
    return last_ != line || ended_ || Clock::now() >= until;
  });
}

Status PullClaim::wait(Clock::time_point until, const OnWait& on_wait) {
  const auto begun = Clock::now();
  std::unique_lock lock(mutex_);
  auto next_turn = begun;
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
    const bool follows = !last_.node.empty();
    if (follows && now >= next_turn) {
      const ClaimEvent line = last_;
      lock.unlock();
      next_turn = pass_turn(line, until, on_wait);
      lock.lock();
      continue;
    }
    const auto wakes = is_waiting ? std::min(until, next_note) : now + kNoteEvery;
    changed_.wait_until(lock, follows ? std::min(wakes, next_turn) : wakes);
  }
  return last_.held ? Status{} : Status{*ended_};
}

}  // namespace weft

#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "control/client.h"
#include "daemon_api/absence.h"
#include "daemon_api/cold_wire.h"
#include "weft/bytes/cold.h"
#include "weft/deadline.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kAdviceMax{500};
constexpr std::chrono::milliseconds kAdviceKept{2'000};
constexpr std::size_t kBegunKept = 4'096;

class ColdClient final : public ColdReads {
 public:
  ColdClient(std::string socket_path, bool expected)
      : link_(std::move(socket_path)), absence_(expected, std::chrono::steady_clock::now()) {}

  Status resolve(VersionId version) override {
    WEFT_CHECK(call("resolve", encode_fields(ResolveRequest{version})));
    return {};
  }

  Result<std::vector<Run>> bring(const ColdRange& what) override {
    WEFT_TRY(control::Answer answer, call("bring", encode_fields(what)));
    return decode_cold_pieces(answer.body, std::move(answer.fds), what.range);
  }

  std::unique_ptr<Begun> begin(const ColdRange& what) override {
    if (!is_new(what)) return nullptr;
    const auto client = link_.client();
    if (!client.ok()) return nullptr;
    auto begun = control::Client::begin(*client, "bring", encode_fields(what));
    return begun ? std::make_unique<BegunBring>(std::move(begun), what.range) : nullptr;
  }

  // Receives answers that no reader waits for: until then they hold descriptors, and so packs.
  void trim() override {
    static_cast<void>(link_.is_there());
    const std::lock_guard lock(begun_mutex_);
    begun_lately_.clear();
  }

  // Returns the last advice if the daemon does not answer within kAdviceMax, so that an open does not wait longer.
  ColdAdvice advice() override {
    const std::lock_guard lock(advice_mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now < ask_again_) return advice_;
    ask_again_ = now + kAdviceKept;
    auto client = link_.client();
    control::CallOptions options;
    options.patience = kAdviceMax;
    auto answer = client.ok() ? (*client)->call("cold", "", {}, options) : Result<control::Answer>(client.error());
    if (!answer.ok()) return advice_;
    if (const auto said = decode_fields<ColdAdvice>(answer->body); said.ok()) advice_ = *said;
    return advice_;
  }

  void on_wait(std::function<void()> alive) override {
    const std::lock_guard lock(alive_mutex_);
    alive_ = std::move(alive);
  }

 private:
  class BegunBring final : public Begun {
   public:
    BegunBring(std::unique_ptr<control::Client::Begun> begun, Range range) : begun_(std::move(begun)), range_(range) {}
    Result<std::vector<Run>> take() override {
      control::CallOptions options;
      options.silence = kSilenceMax;
      options.on_life = [] { return ColdWait::is_wanted(); };
      WEFT_TRY(control::Answer answer, begun_->take(options));
      return decode_cold_pieces(answer.body, std::move(answer.fds), range_);
    }

   private:
    const std::unique_ptr<control::Client::Begun> begun_;
    const Range range_;
  };

  // False if this range was prefetched lately: the page cache has it.
  bool is_new(const ColdRange& what) {
    const std::lock_guard lock(begun_mutex_);
    if (begun_lately_.size() >= kBegunKept) begun_lately_.clear();
    return begun_lately_.insert({what.version, what.file, what.range.offset}).second;
  }

  // Sends a request and waits for the answer. The daemon fails the request if its sources are silent. If a daemon ends
  // without an answer, the next daemon gets the request. If a daemon is busy, the request is repeated.
  Result<control::Answer> call(std::string_view name, const std::string& body) {
    control::CallOptions options;
    options.silence = kSilenceMax;
    options.on_life = [alive = alive()] {
      if (alive) alive();
      return ColdWait::is_wanted();
    };
    for (;;) {
      auto client = link_.client();
      auto answer = client.ok() ? (*client)->call(name, body, {}, options) : Result<control::Answer>(client.error());
      const bool nobody = !client.ok() || (!answer.ok() && (*client)->lost());
      if (!nobody) absence_.end();
      const auto now = std::chrono::steady_clock::now();
      const bool busy = !answer.ok() && answer.error().code == Errc::busy;
      if (busy && !options.on_life()) return Error{Errc::cancelled, "no longer wanted"};
      if (nobody ? absence_.is_over(now) : !busy) return answer;
      std::this_thread::sleep_for(control::kLinkPause);
    }
  }

  std::function<void()> alive() {
    const std::lock_guard lock(alive_mutex_);
    return alive_;
  }

  control::Link link_;
  Absence absence_;
  std::mutex begun_mutex_;
  std::set<std::tuple<VersionId, std::uint32_t, std::uint64_t>> begun_lately_;  // guarded by begun_mutex_
  std::mutex alive_mutex_;
  std::function<void()> alive_;  // guarded by alive_mutex_
  std::mutex advice_mutex_;
  ColdAdvice advice_;                                  // guarded by advice_mutex_
  std::chrono::steady_clock::time_point ask_again_{};  // guarded by advice_mutex_
};

}  // namespace

std::unique_ptr<ColdReads> make_cold_client(const std::string& store_path, bool expected) {
  return std::make_unique<ColdClient>(store_path + "/" + std::string(control::kSocketName), expected);
}

}  // namespace weft

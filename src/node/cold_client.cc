#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "base/json.h"
#include "control/client.h"
#include "node/cold_wire.h"
#include "weft/cold.h"
#include "weft/deadline.h"

namespace weft {
namespace {

// For a daemon to come back, and for its answer: it gives up by itself before.
constexpr std::chrono::milliseconds kAwayMax{5'000};
constexpr std::chrono::milliseconds kAnswerMax{15'000};

class ColdClient final : public ColdReads {
 public:
  explicit ColdClient(std::string socket_path) : link_(std::move(socket_path)) {}

  Status look(VersionId version) override {
    WEFT_CHECK(call("look", JsonWriter().begin_object().member("version", version).end_object().take()));
    return {};
  }

  Result<std::vector<ColdPiece>> bring(const ColdRange& what) override {
    WEFT_TRY(control::Answer answer, call("bring", encode_cold_range(what)));
    return decode_cold_pieces(answer.body, std::move(answer.fds), what.range);
  }

 private:
  // What was asked of a daemon that went away meanwhile is asked again of the next; one that is busy is asked again.
  Result<control::Answer> call(std::string_view name, const std::string& body) {
    const Deadline away = deadline_in(kAwayMax);
    for (;;) {
      auto client = link_.client();
      auto answer = client.ok() ? ask(**client, name, body) : Result<control::Answer>(client.error());
      const bool nobody = !client.ok() || (!answer.ok() && (*client)->lost());
      const bool busy = !answer.ok() && answer.error().code == Errc::busy;
      if (!(nobody || busy) || std::chrono::steady_clock::now() >= away) return answer;
      std::this_thread::sleep_for(control::kLinkPause);
    }
  }

  static Result<control::Answer> ask(control::Client& client, std::string_view name, const std::string& body) {
    control::CallOptions options;
    options.patience = kAnswerMax;
    return client.call(name, body, {}, options);
  }

  control::Link link_;
};

}  // namespace

std::unique_ptr<ColdReads> make_cold_client(const std::string& store_path) {
  return std::make_unique<ColdClient>(store_path + "/" + std::string(control::kSocketName));
}

}  // namespace weft

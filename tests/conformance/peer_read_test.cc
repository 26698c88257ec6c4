// What is read of an answer whose windows end meanwhile.
#include "peers/read.h"

#include <memory>
#include <utility>

#include "exchange_support.h"

namespace weft::conformance {
namespace {

using namespace std::chrono_literals;

// Its reads end when the windows that they are of have.
class LateReads final : public TappedTransport {
 public:
  explicit LateReads(std::unique_ptr<Transport> below) : TappedTransport(std::move(below), [](auto) { return true; }) {}
  Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                            std::shared_ptr<Landing> landing, std::size_t at,
                                            std::size_t length) override {
    WEFT_TRY(auto begun, TappedTransport::read(peer, window, offset, std::move(landing), at, length));
    return std::unique_ptr<PendingRead>(std::make_unique<Late>(std::move(begun)));
  }

 private:
  class Late final : public PendingRead {
   public:
    explicit Late(std::unique_ptr<PendingRead> begun) : begun_(std::move(begun)) {}
    Status wait(Clock::time_point deadline) override {
      Status done = begun_->wait(deadline);
      std::this_thread::sleep_until(late_at_);
      return done;
    }

   private:
    const std::unique_ptr<PendingRead> begun_;
    const Clock::time_point late_at_ = Clock::now() + kWindowLease;
  };
};

std::unique_ptr<Exchange> open_late(TransportWorld& world, const KeyFile& key) {
  ExchangeOptions options;
  options.node = "late";
  options.key_file = key.path();
  return testing::must(
      net::open_exchange(options, [&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
        return std::unique_ptr<Transport>(std::make_unique<LateReads>(world.open(std::move(receiver))));
      }));
}

// A node that gives, and one that gets the bytes of its windows too late.
struct LateReader {
  Result<Answer> ask_for(const std::string& what) { return ask(*late, at(*giver, "giver"), what); }
  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  KeyFile key;
  ScriptedServer server;
  std::unique_ptr<Exchange> giver = open_node(*world, key, "giver", &server);
  std::unique_ptr<Exchange> late = open_late(*world, key);
};

}  // namespace

TEST_CASE("bytes that come after their window has ended are late, and not wrong, whatever they are") {
  LateReader reader;
  auto answer = testing::must(reader.ask_for("bytes"));
  std::vector<std::byte> memory(reader.server.content.size());
  PeerTarget target{memory, nullptr};
  int moved = 0;
  const Status read = read_answer(*reader.late, answer, target, {10s, [&] { ++moved; }});
  REQUIRE(!read.ok());
  CHECK(read.error().code == Errc::timed_out);
  CHECK(moved == 0);
  CHECK(!target.spoiled);
}

TEST_CASE("the head of an answer that comes after its window has ended is late too") {
  LateReader reader;
  const auto answer = reader.ask_for("head");
  REQUIRE(!answer.ok());
  CHECK(answer.error().code == Errc::timed_out);
}

}  // namespace weft::conformance

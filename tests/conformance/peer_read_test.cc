// Reads of an answer whose windows end meanwhile.
#include "peers/read.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "exchange_support.h"

namespace weft::conformance {
namespace {

using namespace std::chrono_literals;

// A transport whose reads finish only after their windows have ended.
class LateReads final : public TappedTransport {
 public:
  explicit LateReads(std::unique_ptr<Transport> below) : TappedTransport(std::move(below), [](auto) { return true; }) {}
  ~LateReads() override { end(); }
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

// A transport that finishes kCome reads and none after them.
class FewReads final : public TappedTransport {
 public:
  static constexpr int kCome = 2;
  explicit FewReads(std::unique_ptr<Transport> below) : TappedTransport(std::move(below), [](auto) { return true; }) {}
  ~FewReads() override { end(); }
  Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                            std::shared_ptr<Landing> landing, std::size_t at,
                                            std::size_t length) override {
    if (++reads_ > kCome) return std::unique_ptr<PendingRead>(std::make_unique<Never>());
    return TappedTransport::read(peer, window, offset, std::move(landing), at, length);
  }

 private:
  class Never final : public PendingRead {
   public:
    Status wait(Clock::time_point deadline) override {
      std::this_thread::sleep_until(deadline);
      return Error{Errc::timed_out, "never"};
    }
  };
  std::atomic<int> reads_{0};
};

template <class Kind>
std::unique_ptr<Exchange> open_with(TransportWorld& world, const KeyFile& key) {
  ExchangeOptions options;
  options.node = "late";
  options.key_file = key.path();
  return testing::must(
      net::open_exchange(options, [&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
        return std::unique_ptr<Transport>(std::make_unique<Kind>(world.open(std::move(receiver))));
      }));
}

// A node that serves bytes, and one with a transport of class Kind.
template <class Kind>
struct Reader {
  Result<std::unique_ptr<Answer>> ask_for(const std::string& what) { return ask(*late, at(*giver, "giver"), what); }
  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  KeyFile key;
  ScriptedServer server;
  std::unique_ptr<Exchange> giver = open_node(*world, key, "giver", &server);
  std::unique_ptr<Exchange> late = open_with<Kind>(*world, key);
};

}  // namespace

TEST_CASE("bytes that come after their window has ended are late, and not wrong, whatever they are") {
  Reader<LateReads> reader;
  auto answer = testing::must(reader.ask_for("bytes"));
  std::vector<std::byte> memory(reader.server.content.size());
  PeerTarget target{memory, nullptr};
  int signs = 0;
  ReadPace pace;
  const auto on_sign = [&] { return ++signs > 0; };
  const Status read = read_answer(*reader.late, *answer, target, {pace, 2 * kWindowLease, on_sign});
  REQUIRE(!read.ok());
  CHECK(read.error().code == Errc::timed_out);
  CHECK(signs == 0);
  CHECK(target.came == 0);
  CHECK(!target.spoiled);
}

TEST_CASE("the bytes that came before a peer fell silent are known, however small the pieces") {
  Reader<FewReads> reader;
  auto answer = testing::must(reader.ask_for("bytes"));
  std::vector<std::byte> memory(reader.server.content.size());
  PeerTarget target{memory, nullptr};
  ReadPace pace;
  const Status read = read_answer(*reader.late, *answer, target, {pace, 300ms, {}});
  REQUIRE(!read.ok());
  CHECK(target.came >= FewReads::kCome * ReadWindow::kPieceStart);
  REQUIRE(target.came < memory.size());
  CHECK(std::equal(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(target.came),
                   reader.server.content.begin()));
}

TEST_CASE("a cancelled read ends at its next sign of life") {
  Reader<FewReads> reader;
  auto answer = testing::must(reader.ask_for("bytes"));
  std::vector<std::byte> memory(reader.server.content.size());
  PeerTarget target{memory, nullptr};
  ReadPace pace;
  int signs = 0;
  const Status read = read_answer(*reader.late, *answer, target, {pace, 10s, [&] { return ++signs < 3; }});
  REQUIRE(!read.ok());
  CHECK(read.error().code == Errc::cancelled);
}

TEST_CASE("the head of an answer that comes after its window has ended is late too") {
  Reader<LateReads> reader;
  const auto answer = reader.ask_for("head");
  REQUIRE(!answer.ok());
  CHECK(answer.error().code == Errc::timed_out);
}

}  // namespace weft::conformance

// Reads of an answer whose windows end meanwhile.
#include "peers/read.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "exchange_support.h"
#include "fakes/blob_store.h"
#include "peers/address.h"
#include "peers/directory.h"
#include "peers/links.h"
#include "peers/messages.h"
#include "peers/offered_read.h"
#include "peers/offered_unit.h"
#include "peers/read_blocks.h"
#include "peers/source.h"

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

// The answer of a peer that has fallen silent. Its waits end at once.
class SilentAnswer final : public Answer {
 public:
  std::span<const std::byte> head() const override { return {}; }
  std::size_t windows() const override { return 1; }
  std::uint64_t length(std::size_t /*window*/) const override { return 1; }
  Deadline open_until() const override { return Deadline::max(); }
  Result<WindowRead> read(std::size_t /*window*/, std::uint64_t /*offset*/, std::shared_ptr<Landing> /*landing*/,
                          std::size_t /*at*/, std::size_t /*length*/) override {
    return WindowRead(std::make_unique<Never>());
  }
  Status wait(PendingRead& /*read*/, std::chrono::milliseconds patience, const OnSign& /*on_sign*/) override {
    longest = std::max(longest, patience);
    return Error{Errc::timed_out, "silent"};
  }
  Deadline keep_open() override { return {}; }
  std::chrono::milliseconds longest{0};  // wait

 private:
  class Never final : public PendingRead {
   public:
    Status wait(Clock::time_point /*deadline*/) override { return Error{Errc::timed_out, "never"}; }
  };
};

template <class Kind>
std::unique_ptr<Exchange> open_with(TransportWorld& world, const KeyFile& key) {
  ExchangeOptions options;
  options.node = "late";
  options.key_file = key.path();
  options.transports = {[&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
    return std::unique_ptr<Transport>(std::make_unique<Kind>(world.open(std::move(receiver))));
  }};
  return testing::must(Exchange::open(options));
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

// Answers "token" with a token, and requests for bytes with these; with Errc::not_found if it has none.
class NamingServer final : public PeerServer {
 public:
  Ends ends;  // of tokens
  std::vector<std::byte> content;
  std::atomic<int> asked{0};

  Result<PeerReply> answer(std::string_view /*node*/, std::span<const std::byte> request) override {
    PeerReply reply;
    if (testing::as_text(request) == "token") {
      reply.windows.push_back(testing::must(WindowMemory::of_bytes(std::vector<std::byte>(kTokenBytes))));
      return ends.recorded(std::move(reply));
    }
    WEFT_TRY(const PeerRequest request_of, decode_request(request));
    const auto* ask = std::get_if<AskBytes>(&request_of);
    if (ask == nullptr) return PeerReply{encode_holders({}), {}};
    ++asked;
    if (content.empty()) return Error{Errc::not_found, "no bytes"};
    reply.windows.push_back(testing::must(WindowMemory::of_bytes(content)));
    return reply;
  }
};

// A node with a PeerSource, the publisher of a version, and a node that has offered a unit of one chunk by name.
struct Naming {
  Naming() {
    VersionRow row;
    row.id = 1;
    row.publisher = "publisher";
    view.expect(row, {});
  }
  ReadAid offered() {
    OfferPlace place{"giver", testing::must(ask(*taker, at(*giver, "giver"), "token")), {}, true};
    ReadAid aid;
    aid.traffic = Traffic::ahead;
    aid.offered =
        std::make_shared<PeerOffer>(std::weak_ptr<PeerOffer::Owner>(), Digest{}, 0, std::vector{run}, std::move(place));
    return aid;
  }
  Result<SourceBytes> read(ReadAid& aid) { return source.read({}, std::span(&run, 1), soon(), aid); }
  std::vector<Member> members() const {
    return {{"giver", "", endpoint_text(giver->endpoints().front().address), "", 0},
            {"publisher", "", endpoint_text(publisher->endpoints().front().address), "", 0}};
  }

  const ChunkRun run{{300'000, {}}, 0, 1};
  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  KeyFile key;
  NamingServer named, published;
  testing::BlobStore store;
  PeerDirectory directory;
  std::unique_ptr<Exchange> giver = open_node(*world, key, "giver", &named);
  std::unique_ptr<Exchange> publisher = open_node(*world, key, "publisher", &published);
  std::unique_ptr<Exchange> taker = open_node(*world, key, "taker", nullptr);
  PeerView view{store, "taker"};
  PeerCoding coding;
  PeerLinks links{[this] { return members(); }};
  PeerNews news{{store, "taker", directory, view, links, *taker}};
  PeerSource source{*taker, view, links, news, coding};
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

TEST_CASE("a read of a silent peer ends once nobody wants its bytes, and not after the peer's patience") {
  const auto world = std::move(transport_worlds().front());
  const KeyFile key;
  const auto reader = open_node(*world, key, "reader", nullptr);
  SilentAnswer answer;
  std::vector<std::byte> memory(1);
  PeerTarget target{memory, nullptr};
  ReadPace pace;
  int asked = 0;
  const Status read = read_answer(*reader, answer, target, {pace, 1h, {}, [&] { return ++asked < 3; }});
  REQUIRE(!read.ok());
  CHECK(read.error().code == Errc::cancelled);
  CHECK(asked == 3);
  CHECK(answer.longest == kSignEvery);
}

TEST_CASE(
    "a read that a rate holds back for longer than the windows are leased brings the right bytes in small pieces") {
  const auto world = std::move(transport_worlds().front());
  const KeyFile key;
  ScriptedServer server;
  const auto giver = open_node(*world, key, "giver", &server);
  const auto reader = open_node(*world, key, "reader", nullptr);
  auto answer = testing::must(ask(*reader, at(*giver, "giver"), "bytes"));
  std::vector<std::byte> memory(server.content.size());
  PeerTarget target{memory, nullptr};
  ReadPace pace;
  PaceGate gate;
  constexpr double kHeldSeconds = 12;  // longer than kWindowLease
  gate.set({.staging = static_cast<std::uint64_t>(static_cast<double>(memory.size()) / kHeldSeconds)});
  PaceGate::Read paced(gate, Traffic::staging, PaceEnd::peer);
  const Status read = read_answer(*reader, *answer, target, {pace, 5s, {}, {}, &paced});
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message));
  CHECK(memory == server.content);
  const PaceFigures figures = gate.figures();
  CHECK(figures.bytes[2][0] == memory.size());
  CHECK(figures.pieces[2][0] >= memory.size() / PaceLine::kPieceMax);
  // The last piece pays for nobody.
  const double last = static_cast<double>(PaceLine::kPieceMax) / static_cast<double>(memory.size()) * kHeldSeconds;
  CHECK(figures.waited_s[2][0] >= kHeldSeconds - last - 1);
  CHECK(std::chrono::duration<double>(target.held).count() >= kHeldSeconds - last - 1);
}

TEST_CASE("a read that is held back ends once nobody wants its bytes") {
  const auto world = std::move(transport_worlds().front());
  const KeyFile key;
  ScriptedServer server;
  const auto giver = open_node(*world, key, "giver", &server);
  const auto reader = open_node(*world, key, "reader", nullptr);
  auto answer = testing::must(ask(*reader, at(*giver, "giver"), "bytes"));
  std::vector<std::byte> memory(server.content.size());
  PeerTarget target{memory, nullptr};
  ReadPace pace;
  PaceGate gate;
  gate.set({.total = 1});
  PaceGate::Read paced(gate, Traffic::foreground, PaceEnd::peer);
  int asked = 0;
  const Status read = read_answer(*reader, *answer, target, {pace, 5s, {}, [&] { return ++asked < 3; }, &paced});
  REQUIRE(!read.ok());
  CHECK(read.error().code == Errc::cancelled);
  CHECK(target.came > 0);
  CHECK(target.came <= PaceLine::kPieceMax);
}

TEST_CASE("the head of an answer that comes after its window has ended is late too") {
  Reader<LateReads> reader;
  const auto answer = reader.ask_for("head");
  REQUIRE(!answer.ok());
  CHECK(answer.error().code == Errc::timed_out);
}

TEST_CASE("an offered unit is read in parts, from the head and the windows of its sender's answer") {
  const auto world = std::move(transport_worlds().front());
  const KeyFile key;
  ScriptedServer server;
  const auto giver = open_node(*world, key, "giver", &server);
  const auto reader = open_node(*world, key, "reader", nullptr);
  const auto blocks = std::make_shared<ReadBlocks>(*reader);
  PeerLinks links([] { return std::vector<Member>(); });
  PaceGate gate;
  const OfferScene scene{*reader, *blocks, links, gate};

  auto bytes = testing::random_bytes(50, 1);
  const auto head = bytes;
  bytes.insert(bytes.end(), server.content.begin(), server.content.end());
  std::vector<ChunkRun> runs;
  for (const std::uint64_t length : {100'000U, 150'000U, 50'050U})
    runs.push_back({{length, Digest{{static_cast<std::uint8_t>(length % 251)}}}, 0, 1});
  const auto offer = [&](const std::vector<ChunkRun>& unit) {
    OfferPlace place{"giver", testing::must(ask(*reader, at(*giver, "giver"), "bytes")), head};
    ReadAid aid;
    aid.offered = std::make_shared<PeerOffer>(std::weak_ptr<PeerOffer::Owner>(), Digest{}, 3, unit, std::move(place));
    return aid;
  };
  ReadAid aid = offer(runs);
  const auto read = [&](std::vector<ChunkRun> some) { return read_offered(scene, some, deadline_in(10s), aid); };
  const auto is_read = [&](const std::vector<ChunkRun>& some, std::size_t from, std::size_t size) {
    const auto got = testing::must(read(some));
    CHECK(got.givers == std::vector<std::uint32_t>(some.size(), links.number_of("giver")));
    return std::ranges::equal(got.bytes(), std::span(bytes).subspan(from, size));
  };
  CHECK(is_read({runs[0]}, 0, 100'000));
  CHECK(is_read({runs[1]}, 100'000, 150'000));
  CHECK(read({runs[0], runs[2]}).error().code == Errc::internal);
  CHECK(read({}).error().code == Errc::internal);
  CHECK(is_read({runs[1], runs[2]}, 100'000, 200'050));
  CHECK(read({runs[0]}).error().code == Errc::unreachable);  // the read of the last bytes has dropped the answer

  aid = offer({runs[0], runs[1]});  // shorter than the sender's bytes
  CHECK(read({runs[0]}).error().code == Errc::corrupt);
  aid = offer({runs[0], runs[1], runs[2], runs[0]});  // longer
  CHECK(read({runs[0]}).error().code == Errc::corrupt);
  aid = offer(runs);
  aid.is_wanted = [] { return false; };
  CHECK(read({runs[0]}).error().code == Errc::cancelled);
  blocks->close();
}

TEST_CASE("a unit that was offered by name is asked of its node alone, which hears by the token that it was read") {
  Naming on;
  on.named.content = testing::random_bytes(on.run.length(), 1);
  on.published.content = testing::random_bytes(on.run.length(), 2);
  ReadAid aid = on.offered();
  const auto got = testing::must(on.read(aid));
  CHECK(std::ranges::equal(got.bytes(), on.named.content));
  CHECK(got.givers == std::vector<std::uint32_t>{on.links.number_of("giver")});
  CHECK(on.named.ends.after(1) == std::vector<std::uint64_t>{kTokenBytes});
  CHECK(
      std::ranges::equal(testing::must(on.read(aid)).bytes(), on.named.content));  // once more, as after a wrong chunk
  CHECK(on.named.asked >= 2);
  CHECK(on.published.asked == 0);
}

TEST_CASE("a unit whose bytes do not come was not read, and no other node is asked") {
  Naming on;
  on.published.content = testing::random_bytes(on.run.length(), 2);
  ReadAid aid = on.offered();
  const auto got = on.read(aid);
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::not_found);
  CHECK(on.named.ends.now().empty());
  aid.offered.reset();
  CHECK(on.named.ends.after(1) == std::vector<std::uint64_t>{0});
  CHECK(on.published.asked == 0);
}

}  // namespace weft::conformance

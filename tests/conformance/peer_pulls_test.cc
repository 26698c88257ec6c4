// Bytes of a pull of another node, over an exchange of twins: right answers, and those of a node that lies.
#include "peers/peer_pulls.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "exchange_support.h"
#include "peers/address.h"
#include "peers/messages.h"

namespace weft::conformance {
namespace {

// Answers every request as `reply` says.
class PullingNode final : public PeerServer {
 public:
  Result<PeerReply> answer(std::string_view /*node*/, std::span<const std::byte> request) override {
    WEFT_TRY(const PeerRequest asked, decode_request(request));
    const auto* ask = std::get_if<PulledAsk>(&asked);
    return ask == nullptr ? Result<PeerReply>(Error{Errc::invalid, "another request"}) : reply(*ask);
  }
  std::function<Result<PeerReply>(const PulledAsk& ask)> reply;
};

struct PullWorld {
  std::vector<Member> members() const {
    return {{"other", "", endpoint_text(other->endpoints().front().address), "", 0}};
  }
  // The other node gives this state of the pieces, and so many bytes.
  void gives(std::vector<std::uint32_t> got, std::size_t bytes, std::size_t windows = 1) {
    node.reply = [=, this](const PulledAsk&) -> Result<PeerReply> {
      PeerReply reply{encode_received(got), {}};
      for (std::size_t i = 0; i < windows && bytes > 0; ++i)
        reply.windows.push_back(testing::must(WindowMemory::of_bytes(std::span(content).first(bytes))));
      return reply;
    };
  }
  Errc refusal() {
    const auto part = pulls.read("other", ask);
    return part.ok() ? Errc::internal : part.error().code;
  }

  std::vector<std::byte> content = testing::random_bytes(3U << 20U, 5);
  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  KeyFile key;
  PullingNode node;
  std::unique_ptr<Exchange> other = open_node(*world, key, "other", &node);
  std::unique_ptr<Exchange> self = open_node(*world, key, "self", nullptr);
  PeerLinks links{[this] { return members(); }};
  PeerPulls pulls{*self, links};
  PulledAsk ask{std::string(32, 'a'), "sub/m.bin", {}, kPieceBytes + 9, 0, 2U << 20U};
};

TEST_CASE("a node reads what another node's pull has received") {
  PullWorld it;
  it.gives({3U << 20U, 9}, 2U << 20U);
  auto part = testing::must(it.pulls.read("other", it.ask));
  CHECK(part.got == std::vector<std::uint32_t>{3U << 20U, 9});
  CHECK(part.bytes == std::vector<std::byte>(it.content.begin(), it.content.begin() + (2 << 20)));
  it.gives({7, 0}, 7);
  CHECK(testing::must(it.pulls.read("other", it.ask)).bytes.size() == 7);
  it.gives({7, 0}, 0);
  CHECK(testing::must(it.pulls.read("other", it.ask)).bytes.empty());
}

TEST_CASE("errors of the other node are those of the read") {
  PullWorld it;
  for (const Errc code : {Errc::not_found, Errc::busy}) {
    it.node.reply = [code](const PulledAsk&) -> Result<PeerReply> { return Error{code, "no"}; };
    CHECK(it.refusal() == code);
  }
  CHECK(it.pulls.read("stranger", it.ask).error().code == Errc::unreachable);
  it.ask.offset = it.ask.size;
  CHECK(it.refusal() == Errc::invalid);
}

TEST_CASE("an answer with another number of pieces, or more bytes than it may have, is refused") {
  PullWorld it;
  it.gives({7}, 7);
  CHECK(it.refusal() == Errc::corrupt);
  it.gives({7, 0, 0}, 7);
  CHECK(it.refusal() == Errc::corrupt);
  it.gives({kPieceBytes + 1, 0}, 7);
  CHECK(it.refusal() == Errc::corrupt);
  it.gives({7, 10}, 7);
  CHECK(it.refusal() == Errc::corrupt);
  it.gives({7, 0}, 8);
  CHECK(it.refusal() == Errc::corrupt);
  it.gives({kPieceBytes, 0}, (2U << 20U) + 1);
  CHECK(it.refusal() == Errc::corrupt);
  it.gives({kPieceBytes, 0}, 1U << 20U, 3);
  CHECK(it.refusal() == Errc::corrupt);
}

}  // namespace
}  // namespace weft::conformance

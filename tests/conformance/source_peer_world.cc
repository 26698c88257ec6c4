// A peer as a source, over exchanges of twins. The peer's daemon answers as a twin source does, including all damage.
#include "exchange_support.h"
#include "fakes/blob_store.h"
#include "fakes/twin_source.h"
#include "peers/address.h"
#include "peers/answers.h"
#include "peers/source.h"
#include "source_twin_world.h"

namespace weft::conformance {
namespace {

class TwinAnswers final : public PeerServer {
 public:
  explicit TwinAnswers(testing::TwinSource& twin) : twin_(twin) {}
  Result<PeerReply> answer(std::string_view /*node*/, std::span<const std::byte> request) override {
    WEFT_TRY(const PeerRequest asked, decode_request(request));
    if (const auto* ask = std::get_if<AskManifest>(&asked)) {
      WEFT_TRY(const auto bytes, twin_.manifest(ask->digest, soon()));
      return given(bytes);
    }
    if (const auto* ask = std::get_if<AskChunks>(&asked)) {
      WEFT_TRY(const auto digests, twin_.chunks({}, ask->run.id, soon()));
      return given(encode_digests(digests));
    }
    if (const auto* ask = std::get_if<AskBytes>(&asked)) {
      ReadAid none;
      WEFT_TRY(const SourceBytes bytes, twin_.read({}, ask->runs, soon(), none));
      return given(bytes.bytes());
    }
    return PeerReply{};
  }

 private:
  static Result<PeerReply> given(std::span<const std::byte> bytes) {
    PeerReply reply;
    if (bytes.size() <= kShortHeadBytesMax) {
      reply.head.assign(bytes.begin(), bytes.end());
      return reply;
    }
    WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
    reply.windows.push_back(std::move(window));
    return reply;
  }

  testing::TwinSource& twin_;
};

class PeerWorld final : public TwinWorld {
 public:
  ~PeerWorld() override { let_go(); }
  std::string name() const override { return "peer"; }
  std::shared_ptr<BlobSource> source() override { return source_; }
  void put(std::vector<std::byte> manifest, const std::vector<Blob>& blobs) override {
    VersionRow row;
    row.id = 1;
    row.manifest = sha256(manifest);
    row.publisher = "giver";
    TwinWorld::put(std::move(manifest), blobs);
    source_->expect(row, {});
  }

 private:
  std::vector<Member> members() const {
    return {{"giver", "", endpoint_text(giver_->endpoints().front().address), "", 0},
            {"taker", "", endpoint_text(taker_->endpoints().front().address), "", 0}};
  }
  std::unique_ptr<TransportWorld> world_ = std::move(transport_worlds().front());
  KeyFile key_;
  TwinAnswers answers_{*twin_};
  testing::BlobStore store_;
  PeerDirectory directory_;
  std::unique_ptr<Exchange> giver_ = open_node(*world_, key_, "giver", &answers_);
  std::unique_ptr<Exchange> taker_ = open_node(*world_, key_, "taker", nullptr);
  PeerView view_{store_, "taker"};
  PeerCoding coding_;
  PeerLinks links_{[this] { return members(); }};
  PeerNews news_{{store_, "taker", directory_, view_, links_, *taker_}};
  std::shared_ptr<PeerSource> source_ = std::make_shared<PeerSource>(*taker_, view_, links_, news_, coding_);
};

}  // namespace

std::unique_ptr<SourceWorld> peer_world() {
  return std::make_unique<PeerWorld>();
}

}  // namespace weft::conformance

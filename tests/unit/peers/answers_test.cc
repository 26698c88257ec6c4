#include "peers/answers.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <variant>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "fakes/blob_store.h"
#include "os/sys.h"
#include "peers/directory.h"
#include "peers/messages.h"
#include "testing.h"

namespace weft::testing {
namespace {

// Runs of one blob, which begins somewhere in a file.
class OneBlob final : public LocalBytes {
 public:
  explicit OneBlob(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {
    id = {bytes_.size(), tree_sha256(bytes_)};
    const PackId pack = store.add_pack(std::string(kAt, '-') + std::string(as_text(bytes_)));
    held = store.add_blob(1, pack, kAt, bytes_.size());
  }
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override {
    std::vector<OpenPlace> places;
    for (const ChunkRun& run : runs) {
      if (run.id != id) {
        places.emplace_back();
        continue;
      }
      WEFT_TRY(OpenPlace place, store.open_blob(held));
      place.offset += run.offset();
      places.push_back(std::move(place));
    }
    return places;
  }
  Result<std::vector<Digest>> digests(const ContentId& of) override {
    if (of != id) return Error{Errc::not_found, "no such blob"};
    std::vector<Digest> out(chunk_count(id.length));
    sha256_chunks(bytes_, out);
    return out;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

  BlobStore store;
  ContentId id, held;

 private:
  static constexpr std::size_t kAt = 100;
  const std::vector<std::byte> bytes_;
};

struct Answering {
  explicit Answering(std::size_t size) : blob(random_bytes(size, size)) { answers.begin(blob); }
  ~Answering() { answers.end(); }
  Result<PeerReply> ask(const PeerRequest& request) { return answers.answer("asker", encode_request(request)); }
  OneBlob blob;
  PeerDirectory directory;
  PeerCoding coding;
  PeerAnswers answers{blob.store, directory, coding};
};

std::vector<std::byte> joined(const PeerReply& reply) {
  std::vector<std::byte> out = reply.head;
  for (const auto& window : reply.windows) {
    const auto bytes = window->bytes();
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace

TEST_CASE("bytes are given in the head when they are few, else in a window") {
  for (const std::size_t size : {std::size_t{500}, 3 * kDigestChunk + 7}) {
    Answering node(size);
    const auto reply = node.ask(AskBytes{{{node.blob.id, 0, chunk_count(size)}}});
    REQUIRE(reply.ok());
    CHECK(std::ranges::equal(joined(*reply), node.blob.bytes()));
    CHECK(reply->windows.size() == (size > kShortHeadBytesMax ? 1 : 0));
  }
}

TEST_CASE("a file that is shorter than it should be fails the one who asked") {
  Answering node(3 * kDigestChunk);
  REQUIRE(::truncate(node.blob.store.pack_path(1).c_str(), kDigestChunk) == 0);
  CHECK(!node.ask(AskBytes{{{node.blob.id, 0, 3}}}).ok());
}

TEST_CASE("what is not here is said to be not here") {
  Answering node(500);
  ContentId other = node.blob.id;
  other.root.bytes[0] ^= 1;
  CHECK(node.ask(AskBytes{{{other, 0, 1}}}).error().code == Errc::not_found);
  CHECK(node.ask(AskChunks{{other, 0, 1}}).error().code == Errc::not_found);
  CHECK(!node.ask(AskManifest{sha256({}), 0}).ok());
}

TEST_CASE("digests of chunks are those of the run") {
  Answering node(3 * kDigestChunk);
  const auto reply = node.ask(AskChunks{{node.blob.id, 1, 2}});
  REQUIRE(reply.ok());
  const auto all = node.blob.digests(node.blob.id).value();
  CHECK(decode_digests(reply->head).value() == std::vector<Digest>(all.begin() + 1, all.end()));
}

TEST_CASE("who can take others first is not given what another node was just given, while there is much to give") {
  Answering node(3 * kDigestChunk);
  std::vector<PeerReply> given;
  const auto ask = [&](std::string_view who, std::uint64_t first, std::uint64_t count, bool yields) {
    const AskBytes bytes{{{node.blob.id, first, count}}, yields};
    auto reply = node.answers.answer(who, encode_request(bytes));
    if (!reply.ok()) return std::optional(reply.error().code);
    given.push_back(std::move(*reply));
    return std::optional<Errc>();
  };
  CHECK_FALSE(ask("one", 0, 2, true));
  CHECK_FALSE(ask("one", 1, 1, true));
  CHECK(ask("two", 1, 2, true) == Errc::exists);
  CHECK_FALSE(ask("two", 2, 1, true));  // what was refused was not noted as given
  CHECK_FALSE(ask("two", 1, 2, false));
  given.clear();
  CHECK_FALSE(ask("one", 2, 1, true));
}

TEST_CASE("who can wait is given nothing while enough others are, and what it is refused counts as not given") {
  Answering node(3 * kDigestChunk);
  const auto ask = [&](std::string_view who, std::uint64_t first, bool yields, bool waits) {
    return node.answers.answer(who, encode_request(AskBytes{{{node.blob.id, first, 1}}, yields, waits}));
  };
  std::vector<Result<PeerReply>> given;
  for (std::size_t i = 0; i < GivingNow::kAtOnceMax; ++i) given.push_back(ask("one", 0, false, true));
  for (const auto& reply : given) REQUIRE(reply.ok());
  std::atomic<std::size_t> refused = 0;
  std::vector<std::thread> askers;
  for (std::size_t i = 0; i < 3 * GivingNow::kWaitingMax; ++i)
    askers.emplace_back([&] {
      const auto reply = ask("two", 1, false, true);
      if (!reply.ok() && reply.error().code == Errc::busy) ++refused;
    });
  CHECK(ask("three", 1, false, false).ok());
  for (std::thread& asker : askers) asker.join();
  CHECK(refused > 0);
  CHECK(ask("two", 2, true, false).ok());
}

TEST_CASE("who announces and asks hears in answer who has it") {
  Answering node(500);
  const Digest manifest = sha256(node.blob.bytes());
  const auto reply = node.ask(Announce{{{manifest, "", 1, {1}, true}}, true});
  REQUIRE(reply.ok());
  CHECK(decode_holders(reply->head).value() == std::vector<HadChunks>{{manifest, "asker", 1, {1}, true}});
}

TEST_CASE("what a node announces is told to those who ask who has it") {
  Answering node(500);
  const Digest manifest = sha256(node.blob.bytes());
  REQUIRE(node.ask(Announce{{{manifest, "", 0, {}}}}).ok());
  const auto reply = node.ask(AskHolders{manifest});
  REQUIRE(reply.ok());
  const auto had = decode_holders(reply->head).value();
  REQUIRE(had.size() == 1);
  CHECK(had[0].node == "asker");
}

TEST_CASE("a daemon that begins or ends answers nothing, and garbage is refused") {
  Answering node(500);
  CHECK(node.answers.answer("asker", random_bytes(64, 1)).error().code == Errc::invalid);
  node.answers.end();
  CHECK(node.ask(AskBytes{{{node.blob.id, 0, 1}}}).error().code == Errc::unreachable);
  node.answers.begin(node.blob);
  CHECK(node.ask(AskBytes{{{node.blob.id, 0, 1}}}).ok());
}

}  // namespace weft::testing

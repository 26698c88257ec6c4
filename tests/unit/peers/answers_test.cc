#include "peers/answers.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <variant>

#include <fmt/core.h>

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

// Serves runs of one blob, which is at some offset of its file.
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

// Two blobs of equal length. In the second one, one byte in `every` differs.
class TwoBlobs final : public LocalBytes {
 public:
  explicit TwoBlobs(std::size_t size, unsigned every = 200) : base(random_bytes(size, 1)) {
    auto bytes = base.bytes();
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    for (std::size_t at = 0; at < size; at += every) changed[at] ^= std::byte{1};
    now = std::make_unique<OneBlob>(std::move(changed));
  }
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override {
    std::vector<OpenPlace> places;
    for (const ChunkRun& run : runs) {
      if (run.id != base.id && run.id != now->id) return Error{Errc::not_found, "no such blob"};
      WEFT_TRY(auto one, run.id == base.id ? base.here(std::span(&run, 1)) : now->here(std::span(&run, 1)));
      places.push_back(std::move(one.front()));
    }
    return places;
  }
  Result<std::vector<Digest>> digests(const ContentId& of) override { return now->digests(of); }
  OneBlob base;
  std::unique_ptr<OneBlob> now;
};

// A node with two blobs, and a decoder of its replies.
struct Coding {
  explicit Coding(std::size_t size, unsigned every = 200) : blobs(size, every) { answers.begin(blobs); }
  ~Coding() { answers.end(); }
  AskBytes ask(const Digest& base, bool must_code = false) const {
    return {{{blobs.now->id, 0, chunk_count(blobs.now->id.length)}},
            Traffic::foreground,
            {{base, 1}},
            CodingEffort::sparse,
            must_code};
  }
  // Decodes each chunk against the base and checks it. Returns how many chunks were coded.
  std::size_t check(const PeerReply& reply, const AskBytes& asked) {
    const GivenChunks given = must(decode_given(reply.head, asked));
    std::vector<std::byte> bytes(reply.head.begin() + static_cast<std::ptrdiff_t>(given.head_bytes()),
                                 reply.head.end());
    for (const auto& window : reply.windows) bytes.insert(bytes.end(), window->bytes().begin(), window->bytes().end());
    REQUIRE(bytes.size() == given.coded_bytes + given.plain_bytes);
    std::size_t coded = 0, coded_at = 0, plain_at = given.coded_bytes;
    const auto chunks = chunks_of(asked.runs);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const auto right = blobs.now->bytes().subspan(chunks[i].at, chunks[i].length);
      const auto base = blobs.base.bytes().subspan(chunks[i].at, chunks[i].length);
      std::vector<std::byte> got(base.begin(), base.end());
      if (given.sizes[i] < chunks[i].length) {
        ++coded;
        CHECK(coder.decode(std::span(bytes).subspan(coded_at, given.sizes[i]), 1, got).ok());
        coded_at += given.sizes[i];
      } else {
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(plain_at), got.size(), got.begin());
        plain_at += got.size();
      }
      CHECK(std::ranges::equal(got, right));
    }
    return coded;
  }
  Result<PeerReply> give(const AskBytes& asked) { return answers.answer("asker", encode_request(asked)); }
  TwoBlobs blobs;
  PeerDirectory directory;
  PeerCoding coding;
  PeerAnswers answers{blobs.base.store, directory, coding};
  ChunkCoder coder;
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

// A pull with these bytes at every offset.
class FixedPull final : public PulledFiles {
 public:
  Result<PulledPart> read(const PulledAsk& ask) override {
    if (ask.path != "m.bin") return Error{Errc::not_found, "no such file"};
    PulledPart part{std::vector<std::uint32_t>(ask.pieces(), 5), {}};
    part.bytes.assign(std::min(ask.length, 5U), std::byte{1});
    return part;
  }
};

// Counts requests, and keeps their replies.
class CountedSwarms final : public SwarmServer {
 public:
  void receive(std::string_view node, Join join, PendingReply reply) override {
    ++joins;
    CHECK(node == "asker");
    CHECK(join.state == Join::State::lives);
    replies.push_back(std::move(reply));
  }
  void receive(std::string_view node, Want want, PendingReply reply) override {
    ++wants;
    CHECK(node == "asker");
    CHECK(want.has == std::vector{std::byte{1}});
    replies.push_back(std::move(reply));
  }
  void unwanted(std::string_view node) override { left.emplace_back(node); }
  void arrived(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) override {}
  void evicted() override {}

  int joins = 0, wants = 0;
  std::vector<PendingReply> replies;
  std::vector<std::string> left;
};

// Keeps the reply that it gets.
class KeptReply final : public ReplyTaker {
 public:
  void give(Result<PeerReply> given) override { reply.emplace(std::move(given)); }
  bool wanted() const override { return !reply; }
  std::optional<Result<PeerReply>> reply;
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

TEST_CASE("bytes of a pull are in a window, and the state of its pieces is in the head") {
  OneBlob blob(random_bytes(10, 1));
  PeerDirectory directory;
  PeerCoding coding;
  FixedPull pull;
  PeerAnswers answers{blob.store, directory, coding, &pull};
  PulledAsk ask{std::string(32, 'a'), "m.bin", {}, 100, 0, 50};
  CHECK(answers.answer("asker", encode_request(ask)).error().code == Errc::unreachable);
  answers.begin(blob);
  auto reply = must(answers.answer("asker", encode_request(ask)));
  CHECK(decode_received(reply.head, ask).value() == std::vector<std::uint32_t>{5});
  REQUIRE(reply.windows.size() == 1);
  CHECK(joined(reply).size() == reply.head.size() + 5);
  ask.length = 0;
  reply = must(answers.answer("asker", encode_request(ask)));
  CHECK(reply.windows.empty());
  ask.path = "other.bin";
  CHECK(answers.answer("asker", encode_request(ask)).error().code == Errc::not_found);
  answers.end();
  CHECK(Answering(10).ask(ask).error().code == Errc::not_found);
}

TEST_CASE("few bytes are sent in the head, more in a window") {
  for (const std::size_t size : {std::size_t{500}, 3 * kDigestChunk + 7}) {
    Answering node(size);
    const auto reply = node.ask(AskBytes{{{node.blob.id, 0, chunk_count(size)}}});
    REQUIRE(reply.ok());
    CHECK(std::ranges::equal(joined(*reply), node.blob.bytes()));
    CHECK(reply->windows.size() == (size > kShortHeadBytesMax ? 1 : 0));
  }
}

TEST_CASE("an answer begins behind the bytes that the asker has, and names for the log what is read") {
  for (const std::size_t size : {std::size_t{500}, 3 * kDigestChunk + 7})
    for (const std::uint32_t skip : {1U, 499U}) {
      Answering node(size);
      AskBytes ask{{{node.blob.id, 0, chunk_count(size)}}};
      ask.skip = skip;
      ask.subject = "bert@1: model.safetensors";
      const auto reply = node.ask(ask);
      REQUIRE(reply.ok());
      CHECK(std::ranges::equal(joined(*reply), std::span(node.blob.bytes()).subspan(skip)));
      CHECK(reply->subject == ask.subject);
    }
}

TEST_CASE("a request for bytes of a truncated pack fails") {
  Answering node(3 * kDigestChunk);
  REQUIRE(::truncate(node.blob.store.pack_path(1).c_str(), kDigestChunk) == 0);
  CHECK(!node.ask(AskBytes{{{node.blob.id, 0, 3}}}).ok());
}

TEST_CASE("a request for absent content fails with Errc::not_found") {
  Answering node(500);
  ContentId other = node.blob.id;
  other.root.bytes[0] ^= 1;
  CHECK(node.ask(AskBytes{{{other, 0, 1}}}).error().code == Errc::not_found);
  CHECK(node.ask(AskChunks{{other, 0, 1}}).error().code == Errc::not_found);
  CHECK(!node.ask(AskManifest{sha256({}), 0}).ok());
}

TEST_CASE("chunks with a base that is here come coded, in the head or in one window") {
  for (const std::size_t size : {std::size_t{5000}, std::size_t{3 * kDigestChunk + 7}}) {
    Coding node(size);
    const AskBytes asked = node.ask(node.blobs.base.id.root);
    const PeerReply reply = must(node.give(asked));
    CHECK(node.check(reply, asked) >= chunk_count(size) - 1);  // a chunk of seven bytes is not coded
    CHECK(reply.windows.size() <= 2);
    CHECK(joined(reply).size() < size / 10);
    CHECK(node.coding.cache.figures().coded >= chunk_count(size) - 1);
    const auto before = node.coding.cache.figures().coded;
    CHECK(node.check(must(node.give(asked)), asked) >= chunk_count(size) - 1);
    CHECK(node.coding.cache.figures().coded == before);
    CHECK(node.coding.cache.figures().found > 0);
  }
}

TEST_CASE("chunks are sent plain if the base is absent or most elements changed") {
  for (const std::size_t size : {std::size_t{5000}, std::size_t{3 * kDigestChunk}}) {
    Coding node(size, 2);
    const AskBytes unlike = node.ask(node.blobs.base.id.root);
    CHECK(node.check(must(node.give(unlike)), unlike) == 0);
    const AskBytes unknown = node.ask(sha256({}));
    CHECK(node.check(must(node.give(unknown)), unknown) == 0);
    CHECK(node.give(node.ask(sha256({}), true)).error().code == Errc::absent);
    CHECK(node.give(node.ask(node.blobs.base.id.root, true)).ok());
  }
}

TEST_CASE("a base that ends early costs plain bytes") {
  Coding node(3 * kDigestChunk);
  REQUIRE(::truncate(node.blobs.base.store.pack_path(1).c_str(), kDigestChunk + 4096) == 0);
  const AskBytes asked = node.ask(node.blobs.base.id.root);
  CHECK(node.check(must(node.give(asked)), asked) == 1);
}

TEST_CASE("one thread codes a chunk, and others wait for it") {
  CodedCache cache;
  std::atomic<int> coded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const auto found = cache.find_or({}, [&] {
        ++coded;
        return std::make_shared<const std::vector<std::byte>>(100);
      });
      CHECK(found->size() == 100);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(coded == 1);
  CHECK(cache.figures().found == 7);
}

TEST_CASE("coded chunks keep within their bytes, and what is not worth it is not kept") {
  CodedCache cache(10'000);
  for (std::uint64_t chunk = 0; chunk < 100; ++chunk)
    cache.put({{}, {}, chunk, 2}, std::make_shared<const std::vector<std::byte>>(1000));
  CHECK(cache.figures().bytes <= 10'000);
  CHECK(cache.find_or({{}, {}, 0, 2}, [] { return nullptr; }) == nullptr);
  CHECK(cache.find_or({{}, {}, 99, 1}, [] { return nullptr; }) == nullptr);  // of another element width
  CHECK(cache.find_or({{}, {}, 99, 2}, [] { return nullptr; }) != nullptr);
  CHECK(cache.figures().plain == 2);
}

TEST_CASE("digests of chunks are those of the run") {
  Answering node(3 * kDigestChunk);
  const auto reply = node.ask(AskChunks{{node.blob.id, 1, 2}});
  REQUIRE(reply.ok());
  const auto all = node.blob.digests(node.blob.id).value();
  CHECK(decode_digests(reply->head).value() == std::vector<Digest>(all.begin() + 1, all.end()));
}

TEST_CASE("reads of a hundred nodes are answered at once, whatever their class of traffic") {
  Answering node(20'000);
  std::vector<PeerReply> replies;  // with their windows
  for (int i = 0; i < 100; ++i) {
    const AskBytes ask{{{node.blob.id, 0, 1}}, i % 2 == 0 ? Traffic::ahead : Traffic::foreground};
    replies.push_back(must(node.answers.answer(fmt::format("node{}", i), encode_request(ask))));
    CHECK(std::ranges::equal(joined(replies.back()), node.blob.bytes()));
  }
}

TEST_CASE("a directory node returns announced holders, until they withdraw") {
  Answering node(500);
  const Digest manifest = sha256(node.blob.bytes());
  const auto holders = [&] { return decode_holders(must(node.ask(AskHolders{manifest})).head).value(); };
  REQUIRE(node.ask(Announce{manifest, true}).ok());
  CHECK(holders() == std::vector<std::string>{"asker"});
  REQUIRE(node.ask(Announce{manifest, false}).ok());
  CHECK(holders().empty());
}

TEST_CASE("a node that takes no part in swarms refuses their requests") {
  Answering on(1000);
  CHECK(on.ask(Join{}).error().code == Errc::unsupported);
  CHECK(on.ask(Want{{}, {std::byte{1}}, {}, false, false, Traffic::ahead}).error().code == Errc::unsupported);
}

TEST_CASE("requests of swarms go to the swarms with the replies that they owe, and other requests do not") {
  Answering node(500);
  CountedSwarms swarms;
  const auto ask = [&](std::span<const std::byte> request) {
    const auto reply = std::make_shared<KeptReply>();
    node.answers.receive("asker", request, PendingReply(reply));
    return reply;
  };
  const auto join = encode_request(Join{{}, "", Join::State::lives});
  const auto want = encode_request(Want{{}, {std::byte{1}}, {}, false, false, Traffic::ahead});
  CHECK(ask(join)->reply.value().error().code == Errc::unsupported);
  node.answers.unwanted("asker");
  node.answers.begin(node.blob, &swarms);
  const auto joins = ask(join);
  const auto wants = ask(want);
  CHECK(!joins->reply);
  CHECK(!wants->reply);
  CHECK(swarms.joins == 1);
  CHECK(swarms.wants == 1);
  swarms.replies.front().give(PeerReply{});
  CHECK(joins->reply.value().ok());
  CHECK(ask(encode_request(AskBytes{{{node.blob.id, 0, 1}}}))->reply.value().ok());
  CHECK(ask(random_bytes(64, 1))->reply.value().error().code == Errc::invalid);
  node.answers.unwanted("asker");
  CHECK(swarms.left == std::vector<std::string>{"asker"});
  node.answers.end();
  CHECK(ask(want)->reply.value().error().code == Errc::unreachable);
  node.answers.unwanted("asker");
  CHECK(swarms.left.size() == 1);
  CHECK(swarms.joins + swarms.wants == 2);
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

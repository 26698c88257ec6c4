// Announcements of local chunks, over exchanges of twins, to a directory node that answers or does not.
#include "peers/news.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <variant>

#include "base/sha256.h"
#include "exchange_support.h"
#include "fakes/blob_store.h"
#include "peers/address.h"
#include "peers/source.h"

namespace weft::conformance {
namespace {

// A node that only keeps a directory.
class DirectoryNode final : public PeerServer {
 public:
  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override {
    WEFT_TRY(const PeerRequest asked, decode_request(request));
    {
      const std::lock_guard lock(mutex_);
      kinds_.push_back(asked.index());
    }
    while (holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (fails) return Error{Errc::busy, "too much to do"};
    if (const auto* announce = std::get_if<Announce>(&asked)) {
      for (const HadChunks& had : announce->had) directory.put(node, had);
      return PeerReply{};
    }
    if (const auto* ask = std::get_if<AskHolders>(&asked))
      return PeerReply{encode_holders(directory.find(ask->manifest)), {}};
    return Error{Errc::not_found, "this node has no bytes"};
  }
  // Indices into PeerRequest, in the order of arrival.
  std::vector<std::size_t> kinds() const {
    const std::lock_guard lock(mutex_);
    return kinds_;
  }
  std::atomic<bool> fails = false;
  std::atomic<bool> holds = false;  // delays its answers
  PeerDirectory directory;

 private:
  mutable std::mutex mutex_;
  std::vector<std::size_t> kinds_;  // guarded by mutex_
};

template <class T>
std::size_t index_of() {
  return PeerRequest(T{}).index();
}

// A cluster of "self", the node under test, and "other". Both are directory nodes of every manifest.
struct World {
  World() {
    row.id = 1;
    row.manifest = sha256(testing::random_bytes(8, 1));
    row.publisher = "other";
    view.expect(row, &manifest, {});
  }
  std::vector<Member> members() const {
    return {{"other", "", endpoint_text(other->endpoints().front().address), "", 0},
            {"self", "", endpoint_text(self->endpoints().front().address), "", 0}};
  }
  // Reports chunks of the blob as arrived for a reader of the version.
  void arrive(std::uint64_t first, std::uint64_t count) {
    news.expect(row.manifest);
    const ChunkRun run{blob, first, count};
    news.arrived(row.manifest, std::span(&run, 1));
  }
  // Returns the chunks that the other node records for this one.
  std::optional<HadChunks> known() {
    const auto had = other_node.directory.find(row.manifest);
    return had.size() == 1 ? std::optional(had.front()) : std::nullopt;
  }
  bool knows(std::uint8_t bits) {
    const auto had = known();
    return had && had->node == "self" && had->bits == std::vector<std::uint8_t>{bits};
  }

  const ContentId blob{4 * kDigestChunk, sha256({})};
  const Manifest manifest{{{"a", blob.length, "", {{0, blob}}, {}, {}}}, {}};
  VersionRow row;
  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  KeyFile key;
  testing::BlobStore store;
  DirectoryNode other_node;
  PeerDirectory directory;
  std::unique_ptr<Exchange> other = open_node(*world, key, "other", &other_node);
  std::unique_ptr<Exchange> self = open_node(*world, key, "self", nullptr);
  PeerView view{store, "self"};
  PeerLinks links{[this] { return members(); }};
  PeerNews news{{store, "self", directory, view, links, *self}};
};

TEST_CASE("arrived chunks are announced to the local and remote directory nodes") {
  World it;
  it.arrive(1, 2);
  REQUIRE(comes_true([&] { return it.knows(0b0110); }));
  CHECK(comes_true([&] { return it.directory.find(it.row.manifest).size() == 1; }));
}

TEST_CASE("a failed announcement is repeated when the directory node answers again") {
  World it;
  it.other_node.fails = true;
  it.arrive(0, 1);
  const auto was_told = [&] {
    const auto kinds = it.other_node.kinds();
    return std::ranges::find(kinds, index_of<Announce>()) != kinds.end();
  };
  REQUIRE(comes_true(was_told));
  it.other_node.fails = false;
  CHECK(comes_true([&] { return it.knows(0b0001); }));
}

TEST_CASE("while a directory node is slow, old announcements are dropped in favour of newer ones") {
  World it;
  it.other_node.holds = true;
  VersionRow row = it.row;
  const auto expect = [&](std::uint64_t seed) {
    row.manifest = sha256(testing::random_bytes(8, seed));
    it.view.expect(row, &it.manifest, {});
    it.news.expect(row.manifest);
    const ChunkRun run{it.blob, 0, 1};
    it.news.arrived(row.manifest, std::span(&run, 1));
  };
  for (std::uint64_t seed = 2; seed < 10; ++seed) expect(seed);
  REQUIRE(comes_true([&] { return !it.other_node.kinds().empty(); }));
  for (std::uint64_t seed = 10; seed < 10 + 65; ++seed) expect(seed);
  it.other_node.holds = false;
  CHECK(comes_true([&] { return !it.other_node.directory.find(row.manifest).empty(); }));
}

TEST_CASE("an eviction of all chunks is announced too") {
  World it;
  it.arrive(1, 2);
  REQUIRE(comes_true([&] { return it.knows(0b0110); }));
  it.news.survey_again();
  CHECK(comes_true([&] { return it.knows(0); }));
}

TEST_CASE("a search for holders collects the answers of all directory nodes") {
  World it;
  it.directory.put("third", {it.row.manifest, "", 0, {}});
  it.other_node.directory.put("fourth", {it.row.manifest, "", 0, {}});
  it.news.ask(it.row.manifest, soon());
  const auto known = it.view.candidates(it.row.manifest, nullptr);
  for (const char* node : {"third", "fourth"})
    CHECK(std::ranges::find(known, node, &PeerCandidate::node) != known.end());
}

TEST_CASE("if all known holders sent wrong bytes, the directories are asked for other holders first") {
  World it;
  PeerCoding coding;
  PeerSource source(*it.self, it.view, it.links, it.news, coding);
  const auto known = it.view.candidates(it.row.manifest, nullptr);
  const auto choice = it.links.take(known, {});
  REQUIRE(choice);
  it.links.done(choice->number, 0, {}, nullptr);
  source.refuted(choice->number);
  const ChunkRun run{it.blob, 0, 1};
  ReadAid aid;
  CHECK(!source.read(it.row.manifest, std::span(&run, 1), soon(), aid).ok());
  const auto kinds = it.other_node.kinds();
  REQUIRE(kinds.size() >= 2);
  CHECK(kinds[0] == index_of<AskHolders>());
  CHECK(kinds[1] == index_of<AskBytes>());
}

}  // namespace
}  // namespace weft::conformance

// Announcements of whole versions, over exchanges of twins, to a directory node that answers or does not.
#include "peers/news.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <variant>

#include <fmt/core.h>

#include "base/sha256.h"
#include "exchange_support.h"
#include "fakes/blob_store.h"
#include "fakes/stepped_time.h"
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
    if (const auto* announce = std::get_if<Announce>(&asked)) {
      if (fails) return Error{Errc::busy, "too much to do"};
      directory.put(node, *announce);
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
  std::atomic<bool> fails = false;  // announcements fail
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

// A cluster of "self", the node under test, and "other", which has published a version of two blobs. Both are directory
// nodes of every manifest.
struct World {
  World() {
    row.publisher = "other";
    read("file");
    while (time.next_pause() > std::chrono::seconds(1)) std::this_thread::yield();  // until the reader wakes the news
  }
  std::vector<Member> members() const {
    return {{"other", "", endpoint_text(other->endpoints().front().address), "", 0},
            {"self", "", endpoint_text(self->endpoints().front().address), "", 0}};
  }
  // Makes `row` a version with this file, whose manifest is local, and begins to read it.
  void read(std::string_view file) {
    const Manifest manifest{
        {{std::string(file), large.length + small.length, "", {{0, large}, {large.length, small}}, {}, {}}}, {}};
    const std::vector<std::byte> bytes = testing::must(encode_manifest(manifest));
    store.add_manifest(bytes);
    ++row.id;
    row.manifest = sha256(bytes);
    view.expect(row, {});
    news.expect(row.manifest);
  }
  // True if both directory nodes name this node as the only holder of the version.
  bool is_announced() {
    const std::vector<std::string> alone{"self"};
    return directory.find(row.manifest) == alone && other_node.directory.find(row.manifest) == alone;
  }
  // Moves the clock from round to round of the news until the condition holds; false if that takes minutes of the
  // clock.
  bool comes_true(const std::function<bool()>& holds) {
    for (int rounds = 0; rounds < 10'000 && !holds(); ++rounds) time.pass(time.next_pause());
    return holds();
  }
  bool is_unknown() { return directory.find(row.manifest).empty() && other_node.directory.find(row.manifest).empty(); }

  testing::SteppedTime time;
  testing::BlobStore store;
  const ContentId large = store.add_blob(1, 1, 0, 4 * kDigestChunk);
  const ContentId small = store.add_blob(2, 1, 4 * kDigestChunk, 100);
  VersionRow row;
  std::unique_ptr<TransportWorld> world = std::move(transport_worlds().front());
  KeyFile key;
  DirectoryNode other_node;
  PeerDirectory directory;
  std::unique_ptr<Exchange> other = open_node(*world, key, "other", &other_node);
  std::unique_ptr<Exchange> self = open_node(*world, key, "self", nullptr);
  PeerView view{store, "self", time};
  PeerLinks links{[this] { return members(); }};
  PeerNews news{{store, "self", directory, view, links, *self, time}};
};

TEST_CASE("a version is announced to the local and remote directory nodes once all of its blobs are in the index") {
  World it;
  it.store.forget_blob(it.small);
  it.news.arrived(it.row.manifest);
  REQUIRE(it.comes_true([&] { return it.store.looks >= 2; }));  // a survey finds one blob of two
  CHECK(it.is_unknown());
  it.store.add_blob(2, 1, 4 * kDigestChunk, 100);
  CHECK(it.comes_true([&] { return it.is_announced(); }));
}

TEST_CASE("a version that is whole when it is read is announced, although nothing of it arrives") {
  World it;
  CHECK(it.comes_true([&] { return it.is_announced(); }));
}

TEST_CASE("a failed announcement is repeated when the directory node answers again") {
  World it;
  it.other_node.fails = true;
  const auto was_told = [&] {
    const auto kinds = it.other_node.kinds();
    return std::ranges::find(kinds, index_of<Announce>()) != kinds.end();
  };
  REQUIRE(it.comes_true(was_told));
  it.other_node.fails = false;
  CHECK(it.comes_true([&] { return it.is_announced(); }));
}

TEST_CASE("while a directory node is slow, old announcements are dropped in favour of newer ones") {
  World it;
  it.other_node.holds = true;
  for (int i = 0; i < 8; ++i) it.read(fmt::format("old {}", i));
  const auto is_asked = [&] {
    it.time.pass(std::chrono::milliseconds(100));
    return !it.other_node.kinds().empty();
  };
  REQUIRE(comes_true(is_asked));  // in a round that goes on
  for (int i = 0; i < 65; ++i) it.read(fmt::format("new {}", i));
  it.other_node.holds = false;
  CHECK(it.comes_true([&] { return it.is_announced(); }));
}

TEST_CASE("after an eviction the announcement is withdrawn") {
  World it;
  REQUIRE(it.comes_true([&] { return it.is_announced(); }));
  it.store.forget_blob(it.large);
  it.news.survey_again();
  CHECK(it.comes_true([&] { return it.is_unknown(); }));
}

TEST_CASE("a search for holders collects the answers of all directory nodes") {
  World it;
  it.directory.put("third", {it.row.manifest, true});
  it.other_node.directory.put("fourth", {it.row.manifest, true});
  it.news.ask(it.row.manifest, soon());
  const auto known = it.view.candidates(it.row.manifest, nullptr);
  for (const char* node : {"third", "fourth"}) CHECK(std::ranges::find(known, node) != known.end());
}

TEST_CASE("if all known holders sent wrong bytes, the directories are asked for other holders first") {
  World it;
  const auto asked = [&] {
    const auto kinds = it.other_node.kinds();
    return std::ranges::count(kinds, index_of<AskHolders>());
  };
  REQUIRE(it.comes_true([&] { return asked() >= 1; }));  // for the reader
  PeerCoding coding;
  PeerSource source(*it.self, it.view, it.links, it.news, coding);
  const auto known = it.view.candidates(it.row.manifest, nullptr);
  const auto choice = it.links.take(known, {});
  REQUIRE(choice);
  it.links.done(choice->number, 0, {}, nullptr);
  source.refuted(choice->number);
  const ChunkRun run{it.large, 0, 1};
  ReadAid aid;
  CHECK(!source.read(it.row.manifest, std::span(&run, 1), soon(), aid).ok());
  const auto kinds = it.other_node.kinds();
  const auto bytes = std::ranges::find(kinds, index_of<AskBytes>());
  CHECK(bytes != kinds.end());
  CHECK(std::count(kinds.begin(), bytes, index_of<AskHolders>()) >= 2);
}

}  // namespace
}  // namespace weft::conformance

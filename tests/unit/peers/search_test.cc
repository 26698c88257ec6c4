#include "peers/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "fakes/blob_store.h"
#include "fakes/manual_time.h"
#include "testing.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using Wanted = PeerSearch::Wanted;

constexpr milliseconds kPatience(4'000);
const Error kLacks{Errc::not_found, "not here"};
const Error kWrong{Errc::io, "its disk fails"};

// A cluster of nodes "a" to "d". "a" has published a version. `does` says how each node reacts to a request.
struct World {
  World() {
    row.id = 1;
    row.manifest = sha256(random_bytes(8, 99));
    row.publisher = "a";
    view.expect(row, {});
  }
  // A directory reports that these nodes hold the whole version.
  void have(const std::vector<std::string>& nodes) { view.heard(row.manifest, nodes); }
  // A request without an answer.
  Status silence(const PeerSearch::Try& one) {
    time.pass(one.patience);
    return Error{Errc::timed_out, "silent"};
  }
  PeerSearch::Attempt attempt() {
    return [this](PeerSearch::Try& one) {
      asked += one.peer.node;
      const auto found = does.find(one.peer.node);
      return found == does.end() ? Status(kLacks) : found->second(one);
    };
  }
  Status search(Wanted wanted = Wanted::bytes) {
    PeerSearch search(scene, row.manifest, wanted, time.now() + kPatience);
    return search.run(wanted == Wanted::manifest ? nullptr : &run, attempt());
  }
  milliseconds passed() const { return std::chrono::duration_cast<milliseconds>(time.now() - begin); }

  ManualTime time;
  const Deadline begin = time.now();
  BlobStore store;
  VersionRow row;
  const ChunkRun run{{kDigestChunk, sha256(random_bytes(8, 1))}, 0, 1};
  PeerView view{store, "self", time};
  PeerLinks links{[] {
                    return std::vector<Member>{{"a", "", "127.0.0.1:1", "", 1},
                                               {"b", "", "127.0.0.1:2", "", 1},
                                               {"c", "", "127.0.0.1:3", "", 1},
                                               {"d", "", "127.0.0.1:4", "", 1}};
                  },
                  time};
  std::map<std::string, std::function<Status(PeerSearch::Try&)>> does;  // nodes without an entry hold nothing
  std::string asked;  // nodes in the order of requests; "?": the directories
  std::function<void()> directories = [] {};
  const PeerScene scene{view, links,
                        [this](const Digest& /*manifest*/, Deadline /*deadline*/) {
                          asked += '?';
                          directories();
                        },
                        time};
};

Status gives(PeerSearch::Try& /*one*/) {
  return {};
}
Status fails(PeerSearch::Try& /*one*/) {
  return kWrong;
}

Errc code_of(const Status& status) {
  REQUIRE(!status.ok());
  return status.error().code;
}

}  // namespace

TEST_CASE("a search asks known peers in turn and ends at the first that sends") {
  for (const Wanted wanted : {Wanted::manifest, Wanted::digests, Wanted::bytes}) {
    World it;
    it.have({"b"});
    it.does = {{"a", gives}, {"b", fails}};
    CHECK(it.search(wanted).ok());
    CHECK((it.asked == "ba" || it.asked == "a"));
  }
}

TEST_CASE("bytes that the publisher of a new version lacks are Errc::not_found, even if other peers fail") {
  for (const bool young : {false, true})
    for (int round = 0; round < 20; ++round) {  // known peers are asked in random order
      const bool known = round > 0;
      World it;
      it.row.time_ns = young ? now_ns() : 0;
      it.view.expect(it.row, {});
      it.does = {{"b", fails}, {"c", fails}};
      if (known) it.have({"b", "c"});
      it.directories = [&it] { it.have({"b", "c"}); };
      CHECK(code_of(it.search()) == (young ? Errc::not_found : Errc::io));
      for (const char node : {'a', 'b', 'c'}) CHECK(it.asked.find(node) != std::string::npos);
    }
}

TEST_CASE("silent peers share one deadline, whatever is wanted") {
  for (const Wanted wanted : {Wanted::manifest, Wanted::digests, Wanted::bytes}) {
    World it;
    it.have({"b", "c", "d"});
    for (const std::string node : {"a", "b", "c", "d"})
      it.does[node] = [&it](PeerSearch::Try& one) { return it.silence(one); };
    CHECK(code_of(it.search(wanted)) == Errc::timed_out);
    CHECK(it.passed() == kPatience);
    CHECK(it.asked.size() >= 3);
  }
}

TEST_CASE("the only peer that is known, silent, leaves time for one that a directory names") {
  World it;
  it.does = {{"a", [&it](PeerSearch::Try& one) { return it.silence(one); }}, {"b", gives}};
  it.directories = [&it] { it.have({"b"}); };
  CHECK(it.search().ok());
  CHECK(it.asked == "a?b");
  CHECK(it.passed() < kPatience);
}

TEST_CASE("a search of one node asks no other, and has all of its time") {
  World it;
  it.have({"b"});
  it.does = {{"a", [](PeerSearch::Try&) -> Status { return {}; }}, {"b", fails}, {"c", [&it](PeerSearch::Try& one) {
                                                                                    return it.silence(one);
                                                                                  }}};
  const auto search_of = [&it](const std::string& only) {
    it.asked.clear();
    PeerSearch search(it.scene, it.row.manifest, Wanted::bytes, it.time.now() + kPatience, only);
    CHECK(search.may_have(only, it.run));
    return search.run(&it.run, it.attempt());
  };
  CHECK(search_of("a").ok());
  CHECK(it.asked == "a");
  CHECK(code_of(search_of("b")) == Errc::io);
  CHECK(it.asked == "b");
  CHECK(code_of(search_of("d")) == Errc::not_found);
  CHECK(it.asked == "d");
  CHECK(code_of(search_of("no member")) == Errc::not_found);
  CHECK(it.asked.empty());
  CHECK(it.passed() == milliseconds(0));
  CHECK(code_of(search_of("c")) == Errc::timed_out);
  CHECK(it.asked == "c");
  CHECK(it.passed() == kPatience);
}

TEST_CASE("bytes that come put the deadline off") {
  World it;
  PeerSearch search(it.scene, it.row.manifest, Wanted::bytes, it.time.now() + kPatience);
  int pieces = 0;
  CHECK(search
            .run(&it.run,
                 [&](PeerSearch::Try& one) -> Status {
                   CHECK(one.patience <= kPatience);
                   for (; pieces < 5; ++pieces) {
                     it.time.pass(one.patience - milliseconds(1));
                     search.came();
                   }
                   return {};
                 })
            .ok());
  CHECK(it.passed() > 2 * kPatience);
  it.does["a"] = gives;
  CHECK(search.run(&it.run, it.attempt()).ok());  // enough time is left for it
}

TEST_CASE("without a known holder, directories and then all nodes are asked; a sender is remembered") {
  World it;
  it.does["d"] = gives;
  CHECK(it.search().ok());
  CHECK(it.asked.substr(0, 2) == "a?");
  CHECK(it.asked.back() == 'd');
  const auto known = it.view.candidates(it.row.manifest, &it.run);
  CHECK(known == std::vector<std::string>{"d"});  // "a" has answered that it holds none
  it.asked.clear();
  CHECK(it.search().ok());
  CHECK(it.asked == "d");
}

TEST_CASE("publishers of parents that share bytes are asked before all other nodes") {
  World it;
  it.row.parents = {{"base", 1, true, 1, 100, it.store.add_version(sha256(random_bytes(8, 98)), "d")}};
  it.view.expect(it.row, {});
  it.does["d"] = gives;
  CHECK(it.search().ok());
  CHECK(it.asked == "a?d");
}

TEST_CASE("bytes that no node has are Errc::not_found after one question to each node") {
  for (const Wanted wanted : {Wanted::manifest, Wanted::digests, Wanted::bytes}) {
    World it;
    CHECK(code_of(it.search(wanted)) == Errc::not_found);
    CHECK(it.asked.size() == 5);
    CHECK(it.view.candidates(it.row.manifest, wanted == Wanted::manifest ? nullptr : &it.run).empty() ==
          (wanted != Wanted::digests));
  }
}

TEST_CASE("a failed peer is asked again last, and its error is reported") {
  for (const Wanted wanted : {Wanted::manifest, Wanted::digests, Wanted::bytes}) {
    World it;
    int times = 0;
    it.does["a"] = [&times](PeerSearch::Try& /*one*/) { return ++times == 1 ? Status(kWrong) : Status(); };
    CHECK(it.search(wanted).ok());
    CHECK(it.asked.size() == 6);  // each node, the directories, and "a" again
    it.does["a"] = fails;
    it.asked.clear();
    CHECK(code_of(it.search(wanted)) == Errc::io);
    CHECK(std::ranges::count(it.asked, 'a') == 2);
  }
}

TEST_CASE("the error of a failed holder is reported, not that other peers lack the bytes") {
  World it;
  it.does["a"] = fails;
  for (const std::string node : {"b", "c", "d"})
    it.does[node] = [&it](PeerSearch::Try& /*one*/) {
      it.time.pass(kPatience);
      return Status(kLacks);
    };
  CHECK(code_of(it.search()) == Errc::io);
  CHECK(it.asked.back() != 'a');
}

TEST_CASE("the last error of a silent cluster names the peer, and how long nothing came") {
  World it;
  it.does["a"] = [&it](PeerSearch::Try& one) { return it.silence(one); };
  const Status status = it.search();
  REQUIRE(!status.ok());
  CHECK(status.error().message == "peer a: nothing came for 4 s; the last try: silent");
}

TEST_CASE("a peer that cannot be reached is tried until the deadline, and gives once it is back") {
  World it;
  const auto away = [&it](PeerSearch::Try& /*one*/) -> Status {
    if (it.passed() < milliseconds(3'000)) return Error{Errc::unreachable, "nobody listens"};
    return {};
  };
  it.does["a"] = away;
  CHECK(it.search().ok());
  CHECK(it.passed() >= milliseconds(3'000));
  CHECK(it.passed() < kPatience);
  it.does["a"] = [](PeerSearch::Try& /*one*/) { return Status(Error{Errc::unreachable, "nobody listens"}); };
  const auto begin = it.time.now();
  CHECK(code_of(it.search()) == Errc::unreachable);
  CHECK(it.time.now() - begin == kPatience);
}

TEST_CASE("an overloaded peer is asked again while it answers that it is, with pauses") {
  for (const Wanted wanted : {Wanted::manifest, Wanted::digests, Wanted::bytes}) {
    World it;
    it.does["a"] = [&it](PeerSearch::Try& /*one*/) -> Status {
      if (it.passed() < 3 * kPatience) return Error{Errc::busy, "too many calls"};
      return {};
    };
    CHECK(it.search(wanted).ok());
    CHECK(it.passed() >= 3 * kPatience);
    CHECK(it.asked.find_first_not_of('a') == std::string::npos);
    CHECK(it.asked.size() <= static_cast<std::size_t>(3 * kPatience / milliseconds(50)));
  }
}

TEST_CASE("a cancelled read ends at once") {
  World it;
  it.does["a"] = [](PeerSearch::Try& /*one*/) { return Status(Error{Errc::cancelled, "no longer wanted"}); };
  CHECK(code_of(it.search()) == Errc::cancelled);
  CHECK(it.asked == "a");
}

TEST_CASE("a search waits for a peer that is sending to other reads") {
  World it;
  const auto known = it.view.candidates(it.row.manifest, &it.run);
  std::vector<PeerLinks::Choice> reads;
  while (auto one = it.links.take(known, {})) reads.push_back(*one);
  it.have({"a"});
  it.does["a"] = gives;
  CHECK(code_of(it.search()) == Errc::timed_out);
  CHECK(it.asked.empty());
  CHECK(it.passed() == kPatience);
  CHECK(it.search(Wanted::manifest).ok());  // a small request is sent to a busy peer
  it.links.moved(reads[0].number);
  it.time.pass(milliseconds(2'000));
  const auto begin = it.time.now();
  CHECK(code_of(it.search()) == Errc::timed_out);
  CHECK(it.time.now() == begin + kPatience);
  it.links.done(reads[0].number, 1, milliseconds(1), nullptr);
  CHECK(it.search().ok());
}

TEST_CASE("another holder is asked in place of an overloaded one") {
  World it;
  it.have({"b"});
  it.does = {{"a", [](PeerSearch::Try& /*one*/) { return Status(Error{Errc::busy, "too many calls"}); }}, {"b", gives}};
  CHECK(it.search().ok());
  CHECK((it.asked == "ab" || it.asked == "b"));
  CHECK(it.passed() == milliseconds(0));
}

TEST_CASE("a silent holder is asked before unknown nodes") {
  World it;
  it.have({"b"});
  const auto first = it.links.take(std::vector<std::string>{"b"}, {});
  REQUIRE(first);
  const Error silent{Errc::timed_out, "silent"};
  it.links.done(first->number, 0, milliseconds(1), &silent);
  it.does["b"] = gives;
  CHECK(it.search().ok());
  CHECK(it.asked == "a?b");
}

}  // namespace weft::testing

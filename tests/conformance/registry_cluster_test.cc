// Clusters of several nodes: mirrors of a real etcd that is killed, compacted, reset, or tampered with.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include "../unit/store/index_support.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "diskformat/catalog_record.h"
#include "fakes/http_server.h"
#include "http/client/http_client.h"
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "registry_worlds.h"

namespace weft {
namespace {

using namespace conformance;
using testing::EtcdProcess;
using testing::TempDir;
using namespace std::chrono_literals;

struct World {
  EtcdProcess etcd;
  TempDir dir;
  EtcdOptions options = etcd_options(etcd);
  std::unique_ptr<ClusterNode> node(const std::string& name, bool wait = true) {
    return std::make_unique<ClusterNode>(dir / name, options, wait);
  }
  // A node whose claims do not expire on a slow machine.
  std::unique_ptr<ClusterNode> patient(const std::string& name) {
    return std::make_unique<ClusterNode>(dir / name, options, true, std::chrono::seconds(60));
  }
};

bool shows(RegistryNode& node, const std::string& names) {
  bool same = eventually([&] { return names_of(node.store()) == names; });
  if (!same) MESSAGE("shows ", names_of(node.store()));
  return same;
}

void must(const Result<PublishOutcome>& outcome) {
  if (!outcome.ok()) FAIL(outcome.error().message);
}

// Moves up if it can.
ClaimStanding stand(const std::unique_ptr<Claim>& claim) {
  const auto standing = claim->stand();
  if (!standing.ok()) FAIL(standing.error().message);
  return *standing;
}

std::unique_ptr<Claim> line_up(RegistryNode& node) {
  return testing::must(node.registry().claim(std::string(limits::kClaimDigits, 'c')));
}

TEST_CASE("cluster: one node has a claim, and the others get it in the order in which they came") {
  World world;
  auto a = world.patient("a"), b = world.patient("b");
  auto first = line_up(*a), second = line_up(*b), third = line_up(*a);
  CHECK(stand(first).held);
  CHECK(stand(first).last.node.empty());
  const std::string node = a->store().cluster()->node, other = b->store().cluster()->node;
  ClaimStanding standing = stand(second);
  CHECK_FALSE(standing.held);
  CHECK(standing.ahead.node == node);
  CHECK(standing.holder.node == node);
  CHECK(standing.holder.since_ns > 0);
  CHECK_FALSE(stand(third).held);
  first.reset();
  standing = stand(third);  // the one before has not looked yet
  CHECK_FALSE(standing.held);
  CHECK(standing.holder.node == other);
  standing = stand(second);
  CHECK(standing.held);
  CHECK(standing.last.node == node);
  CHECK(stand(third).ahead.node == other);
  CHECK(stand(second).held);
  second.reset();
  standing = stand(third);
  CHECK(standing.held);
  CHECK(standing.last.node == other);
}

TEST_CASE("cluster: of the nodes that wait for a claim, two copy from its holder and two from each of these") {
  World world;
  std::vector<std::unique_ptr<ClusterNode>> nodes;
  std::vector<std::unique_ptr<Claim>> line;
  const auto ahead = [&](std::size_t number) {
    const std::string name = stand(line[number]).ahead.name;  // the path of the store
    return name.substr(name.rfind('/') + 1);
  };
  for (const char* name : {"0", "1", "2", "3", "4", "5"}) {
    nodes.push_back(world.patient(name));
    line.push_back(line_up(*nodes.back()));
    stand(line.back());
  }
  CHECK(ahead(1) == "0");
  CHECK(ahead(2) == "0");
  CHECK(ahead(3) == "1");
  CHECK(ahead(4) == "1");
  CHECK(ahead(5) == "2");
  line[1].reset();  // those behind it move up
  CHECK(ahead(3) == "0");
  CHECK(ahead(4) == "2");
  CHECK(ahead(5) == "2");
  line[0].reset();
  CHECK(ahead(2).empty());  // it has the claim
  CHECK(ahead(3) == "2");
  CHECK(ahead(5) == "3");
}

TEST_CASE("cluster: the holder of a claim shows to the next one what it has published") {
  World world;
  auto a = world.patient("a"), b = world.patient("b");
  auto first = line_up(*a), second = line_up(*b);
  CHECK(stand(first).held);
  CHECK_FALSE(stand(second).held);
  must(publish(*a, "org/m", {1}));
  first.reset();
  CHECK(stand(second).held);
  CHECK(names_of(b->store()) == "org/m@1");
}

TEST_CASE("cluster: what one node publishes, tags and removes shows on the other, bare until it is looked into") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "org/m", {1, 2}));
  REQUIRE(shows(*b, "org/m@1"));
  {
    auto snapshot = b->store().snapshot().value();
    auto row = snapshot->version(snapshot->model("org/m")->id, 1).value();
    CHECK(row.logical_bytes == 2003);
    CHECK(row.manifest == a->store().snapshot().value()->version(1)->manifest);
    CHECK(snapshot->is_bare(row.id).value());
  }
  REQUIRE(b->registry().set_tag("org/m", "best", 1).ok());
  CHECK(shows(*a, "org/m@1 org/m:best=1"));
  REQUIRE(remove_version(b->registry(), "org/m", 1).ok());
  CHECK(shows(*a, ""));
}

TEST_CASE("cluster: a model that was published here before is published without asking etcd first") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  const std::uint64_t before = a->registry().status().requests;
  for (unsigned content : {2, 3, 4, 5, 6, 7, 8, 9}) must(publish(*a, "m", {content}));
  CHECK(a->registry().status().requests - before < 16);  // one per publish, and a few for the lease
  // Changes by other nodes arrive by the watch, or show by a failed transaction.
  for (unsigned content = 10; content < 20; content += 2) {
    must(publish(*b, "m", {content}));
    must(publish(*a, "m", {content + 1}));
  }
  REQUIRE(remove_version(b->registry(), "m", 19).ok());
  must(publish(*a, "m", {30}));
  CHECK(names_of(a->store()).find("m@20") != std::string::npos);
  // Equal content makes no version if it is the newest, even if another node has removed a newer one.
  auto same = publish(*a, "m", {30});
  must(same);
  CHECK(!same->made);
  CHECK(same->version.number == 20);
}

TEST_CASE("cluster: a node is complete once it has all changes from before its start, by a list or by its watch") {
  World world;
  world.etcd.pause();
  auto a = world.node("a", false);
  CHECK(!a->registry().status().complete);
  world.etcd.resume();
  REQUIRE(eventually([&] { return a->registry().status().complete; }));
  auto b = world.node("b");
  a.reset();
  must(publish(*b, "m", {1}));
  a = world.node("a", false);
  REQUIRE(eventually([&] { return a->registry().status().complete; }));
  CHECK(names_of(a->store()) == "m@1");
}

TEST_CASE("cluster: a node is not complete while etcd does not answer to its barrier") {
  World world;
  must(publish(*world.node("a"), "m", {1}));
  must(publish(*world.node("b"), "m", {2}));
  // A proxy that passes reads on to etcd, and answers to changes that etcd has just stopped.
  HttpClient http({{}, {}, {}, 1s, limits::kEtcdAnswerMax});
  testing::HttpServer proxy([&](int fd, const std::string& path, const std::string& body) {
    const bool changes = body.find("request_put") != std::string::npos;
    if (!changes) {
      auto answer = http.post(world.etcd.endpoint() + path, body, {}, std::chrono::steady_clock::now() + 5s);
      if (answer.ok()) return testing::send_text(fd, testing::http_answer(answer->status, answer->body));
    }
    testing::send_text(fd, testing::http_answer(503, R"({"code":14,"message":"etcdserver: server stopped"})"));
  });
  EtcdOptions options = world.options;
  options.endpoints = {proxy.endpoint()};
  auto a = std::make_unique<ClusterNode>(world.dir / "a", options, false);
  REQUIRE(eventually([&] { return a->registry().status().trouble.find("server stopped") != std::string::npos; }));
  CHECK_FALSE(a->registry().status().complete);
  CHECK(names_of(a->store()) == "m@1");
  a.reset();
  a = world.node("a");
  CHECK(eventually([&] { return a->registry().status().complete; }));
  CHECK(shows(*a, "m@1 m@2"));
}

TEST_CASE("cluster: a check finds all that is wrong with each endpoint, and changes nothing") {
  World world;
  CHECK(check_cluster(nullptr, world.options).empty());
  auto a = world.node("a");
  CHECK(check_cluster(&a->store(), world.options).empty());
  must(publish(*a, "m", {1}));
  CHECK(check_cluster(&a->store(), world.options).empty());
  CHECK(names_of(a->store()) == "m@1");  // the check deletes no key
  EtcdOptions wrong = world.options;
  wrong.cluster = "other";
  wrong.endpoints.insert(wrong.endpoints.begin(), "http://127.0.0.1:1");
  const auto found = check_cluster(&a->store(), wrong);
  REQUIRE(found.size() == 2);
  CHECK(found[0].message.find("http://127.0.0.1:1") != std::string::npos);
  CHECK(found[1].message.find("etcd has nothing at /weft/other/meta, and this store is of the cluster") !=
        std::string::npos);
}

// Returns the names of the records that this node would write to an origin.
std::set<std::string> told_by(RegistryNode& node) {
  auto batch = static_cast<ClusterStore&>(node.store()).ledger().events(0);
  if (!batch.ok()) FAIL(batch.error().message);
  std::set<std::string> names;
  for (const CatalogEvent& event : batch->events) {
    names.insert(catalog_event_name(event, node.store().cluster()->cluster));
    if (const auto* tag = std::get_if<MirroredTag>(&event)) CHECK(tag->revision > 0);
  }
  return names;
}

TEST_CASE("cluster: all nodes reach the same state, by the watch or by a list") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  must(publish(*b, "m", {2}));
  for (std::uint64_t number : {1, 2}) REQUIRE(a->registry().set_tag("m", "best", number).ok());
  REQUIRE(b->registry().set_tag("m", "gone", 1).ok());
  REQUIRE(a->registry().set_tag("m", "gone", std::nullopt).ok());
  REQUIRE(remove_version(b->registry(), "m", 1).ok());
  for (auto* node : {a.get(), b.get()}) REQUIRE(shows(*node, "m@2 m:best=2"));
  CHECK(told_by(*a).size() == 7);
  CHECK(told_by(*a) == told_by(*b));
  auto late = world.node("late");
  REQUIRE(shows(*late, "m@2 m:best=2"));
  const auto all = told_by(*a);
  const auto some = told_by(*late);
  CHECK(some.size() == 4);  // without the former targets of tags
  CHECK(std::includes(all.begin(), all.end(), some.begin(), some.end()));
}

// Returns the changes of a model's tags, newest first, such as "best 1 2 alice@a". The name of a node is its directory.
std::vector<std::string> moves_of(RegistryNode& node, const std::string& model) {
  std::vector<std::string> moves;
  auto snapshot = node.store().snapshot().value();
  const auto page = snapshot->tag_moves(snapshot->model(model)->id);
  for (const TagMove& move : page->rows)
    moves.push_back(fmt::format("{} {} {} {}@{}", move.name, move.before, move.number, move.by.user,
                                std::filesystem::path(move.by.node).filename().string()));
  return moves;
}

TEST_CASE("cluster: all nodes know who moved a tag, and on which node") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  PublishRequest request;
  request.tags = {"best"};
  request.by = {"alice", "somewhere"};
  must(publish(*a, "m", {1}, request));
  must(publish(*b, "m", {2}));
  REQUIRE(b->registry().set_tag("m", "best", 2, {"bob", ""}).ok());
  REQUIRE(b->registry().set_tag("m", "gone", 1, {"bob", ""}).ok());
  REQUIRE(a->registry().set_tag("m", "gone", std::nullopt, {"carol", ""}).ok());
  const VersionName second{"m", 2};
  REQUIRE(b->registry().remove_versions({&second, 1}, Tagged::removed, {"dave", ""}).ok());
  const std::vector<std::string> all = {"best 2 0 dave@b", "gone 1 0 carol@a", "gone 0 1 bob@b", "best 1 2 bob@b",
                                        "best 0 1 alice@a"};
  for (auto* node : {a.get(), b.get()}) {
    REQUIRE(shows(*node, "m@1"));
    CHECK(moves_of(*node, "m") == all);
    const auto snapshot = node->store().snapshot().value();
    const VersionRow version = snapshot->version(snapshot->model("m")->id, 1).value();
    CHECK(version.by.user == "alice");
    CHECK(std::filesystem::path(version.by.node).filename() == "a");
  }
  REQUIRE(a->registry().set_tag("m", "best", 1, {"alice", ""}).ok());
  auto late = world.node("late");  // knows the last change of each tag that is there
  REQUIRE(shows(*late, "m@1 m:best=1"));
  CHECK(moves_of(*late, "m") == std::vector<std::string>{"best 0 1 alice@a"});
}

TEST_CASE("cluster: two nodes that publish one model at once get two versions, or one of equal content") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  for (unsigned i = 1; i <= 40; ++i) testing::content_id(i);
  for (unsigned round = 0; round < 10; ++round) {
    Result<PublishOutcome> first = Error{};
    std::thread other([&] { first = publish(*a, "m", {2 * round + 1}); });
    auto second = publish(*b, "m", {2 * round + 2});
    other.join();
    must(first);
    must(second);
    CHECK(first->version.number + second->version.number == 4 * round + 3);
  }
  Result<PublishOutcome> first = Error{};
  std::thread other([&] { first = publish(*a, "same", {9}); });
  auto second = publish(*b, "same", {9});
  other.join();
  must(first);
  must(second);
  CHECK(first->made != second->made);
  CHECK(first->version.number == 1);
  CHECK(second->version.number == 1);
}

TEST_CASE("cluster: without etcd the state stands and changes say why they fail; it goes on by itself") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  REQUIRE(shows(*b, "m@1"));
  world.etcd.kill();
  REQUIRE(a->wait_connected(false));
  CHECK(names_of(a->store()) == "m@1");
  auto failed = publish(*a, "m", {2});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().code == Errc::unreachable);
  CHECK(a->registry().set_tag("m", "x", 1).error().code == Errc::unreachable);
  world.etcd.restart();
  REQUIRE(a->wait_connected());
  REQUIRE(b->wait_connected());
  must(publish(*a, "m", {2}));
  CHECK(shows(*b, "m@1 m@2"));
}

TEST_CASE("cluster: a node that starts without etcd shows what it knew, and joins when etcd comes") {
  World world;
  must(publish(*world.node("a"), "m", {1}));
  world.etcd.kill();
  auto a = world.node("a", false);
  auto fresh = world.node("fresh", false);
  CHECK(names_of(a->store()) == "m@1");
  CHECK_FALSE(a->registry().status().connected);
  CHECK_FALSE(a->registry().status().trouble.empty());
  world.etcd.restart();
  CHECK(a->wait_connected());
  CHECK(shows(*fresh, "m@1"));
}

TEST_CASE("cluster: a node that ends while its watch begins waits for nothing") {
  World world;
  for (int round = 0; round < 100; ++round) {
    auto a = world.node("a", false);
    std::this_thread::sleep_for(round * std::chrono::microseconds(250));
    const auto begun = std::chrono::steady_clock::now();
    a.reset();
    REQUIRE(std::chrono::steady_clock::now() - begun < std::chrono::seconds(20));  // a watch lasts a minute
  }
}

TEST_CASE("cluster: a node that was away continues from its revision") {
  World world;
  auto a = world.node("a");
  world.node("b");  // joins once, so it knows the cluster
  must(publish(*a, "m", {1}, {}));
  auto b = world.node("b");
  REQUIRE(shows(*b, "m@1"));
  b.reset();
  must(publish(*a, "m", {2}));
  REQUIRE(a->registry().set_tag("m", "x", 2).ok());
  b = world.node("b");
  CHECK(shows(*b, "m@1 m@2 m:x=2"));
  CHECK(b->registry().status().lists == 0);
  // If the node does not know which history it has mirrored, it reads the whole list.
  b.reset();
  testing::write_file(world.dir / "b/registry", "rubbish");
  b = world.node("b");
  CHECK(b->registry().status().lists == 1);
}

TEST_CASE("cluster: a node that was away applies changes beyond the size of one commit, and then follows the watch") {
  World world;
  auto a = world.node("a");
  must(publish(*a, "m", {1}));
  auto b = world.node("b");
  REQUIRE(shows(*b, "m@1"));
  b.reset();
  RegistryKeys keys(world.options.prefix, world.options.cluster);
  etcd::Client client(world.options);
  const Uuid uid = a->store().snapshot().value()->version(1)->uid;
  for (int i = 0; i < 30; ++i) {
    etcd::Txn txn;
    for (int one = 0; one < 100; ++one) {
      const std::string key = keys.tag("m", "t" + std::to_string(i * 100 + one));
      txn.then.emplace_back(etcd::Put{key, seal(RegistryTag{1, 1, {}, uid}, keys.bound(key)), 0});
    }
    REQUIRE(client.txn(txn).ok());
  }
  REQUIRE(a->registry().set_tag("m", "t1717", std::nullopt).ok());
  for (int round = 0; round < 2; ++round) {
    b = world.node("b");
    CHECK(shows(*b, names_of(a->store())));
    CHECK(b->store().snapshot().value()->tags(1).value().rows.size() == 2'999);
    CHECK(b->registry().status().lists == 0);
    CHECK(b->registry().status().refused == 0);
    b.reset();
  }
}

void compact(const World& world) {
  etcd::Client client(world.options);
  auto now = client.range({{"x", ""}, 0, 0, false, false});
  REQUIRE(now.ok());
  world.etcd.control({"compact", std::to_string(now->header.revision)});
}

TEST_CASE("cluster: a node that was away for longer than etcd keeps reads the whole, and has what differs") {
  World world;
  auto a = world.node("a");
  must(publish(*a, "m", {1}));
  must(publish(*a, "m", {2}));
  must(publish(*a, "gone", {3}));
  REQUIRE(a->registry().set_tag("m", "stays", 1).ok());
  REQUIRE(a->registry().set_tag("m", "moves", 1).ok());
  REQUIRE(a->registry().set_tag("m", "goes", 1).ok());
  auto b = world.node("b");
  REQUIRE(shows(*b, names_of(a->store())));
  b.reset();
  REQUIRE(a->registry().set_tag("m", "moves", 2).ok());
  REQUIRE(a->registry().set_tag("m", "goes", std::nullopt).ok());
  REQUIRE(a->registry().describe("gone", 1, {"superseded", {}}).ok());
  REQUIRE(remove_version(a->registry(), "gone", 1).ok());
  must(publish(*a, "brief", {4}));
  REQUIRE(remove_version(a->registry(), "brief", 1).ok());
  must(publish(*a, "brief", {5}));
  compact(world);
  b = world.node("b");
  CHECK(shows(*b, "brief@2 m@1 m@2 m:moves=2 m:stays=1"));
  CHECK(b->registry().status().lists == 1);
  // Versions that were published and removed meanwhile are tombstones.
  auto snapshot = b->store().snapshot().value();
  CHECK(snapshot->version(snapshot->model("brief")->id, 1)->removed);
  const VersionRow gone = snapshot->version(snapshot->model("gone")->id, 1).value();
  CHECK(gone.removed);
  CHECK(gone.message == "superseded");  // a tombstone keeps the last one
}

TEST_CASE("cluster: a new node reads the whole, in the order in which it happened") {
  World world;
  auto a = world.node("a");
  must(publish(*a, "z", {1}));
  PublishRequest child;
  child.parents.push_back({"z", 1, true, 0, 0, 0});
  child.tags = {"t"};
  must(publish(*a, "b", {2}, child));
  REQUIRE(remove_version(a->registry(), "z", 1).ok());
  compact(world);
  auto b = world.node("b");
  CHECK(shows(*b, "b@1 b:t=1"));
  auto snapshot = b->store().snapshot().value();
  auto row = snapshot->version(snapshot->model("b")->id, 1).value();
  REQUIRE(row.parents.size() == 1);
  CHECK(row.parents[0].id == snapshot->version(snapshot->model("z")->id, 1)->id);
}

TEST_CASE("cluster: a description reaches all nodes and their origin, and a list still has parents first") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "z", {1}));
  PublishRequest child;
  child.parents.push_back({"z", 1, true, 0, 0, 0});
  must(publish(*a, "b", {2}, child));
  REQUIRE(shows(*b, "b@1 z@1"));
  REQUIRE(b->registry().describe("z", 1, {"checked", {{"loss", "0.5"}}}).ok());
  const auto first = [](RegistryNode& node) {
    auto snapshot = node.store().snapshot().value();
    return snapshot->version(snapshot->model("z")->id, 1).value();
  };
  REQUIRE(eventually([&] { return first(*a).message == "checked"; }));
  CHECK(first(*a).described_ns == first(*b).described_ns);
  CHECK(told_by(*a) == told_by(*b));
  CHECK(told_by(*a).size() == 3);
  auto late = world.node("late");
  REQUIRE(shows(*late, "b@1 z@1"));
  CHECK(first(*late).metrics == Metrics{{"loss", "0.5"}});
  CHECK(told_by(*late) == told_by(*a));
  auto snapshot = late->store().snapshot().value();
  const VersionRow row = snapshot->version(snapshot->model("b")->id, 1).value();
  CHECK(row.parents.at(0).id == snapshot->version(snapshot->model("z")->id, 1)->id);
}

TEST_CASE("cluster: an undelete reaches all nodes and their origin, and a list still has parents first") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  const IsAtOrigin nowhere = [](const Digest&) { return false; };
  must(publish(*a, "z", {1}));
  PublishRequest child;
  child.parents.push_back({"z", 1, true, 0, 0, 0});
  must(publish(*a, "b", {2}, child));
  REQUIRE(shows(*b, "b@1 z@1"));
  REQUIRE(remove_version(b->registry(), "z", 1).ok());
  const auto refused = b->registry().undelete("z", 1, nowhere);  // a published it, and keeps its bytes
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::absent);
  CHECK(refused.error().message.find("only the node that published it") != std::string::npos);
  REQUIRE(a->registry().undelete("z", 1, nowhere).ok());
  REQUIRE(shows(*b, "b@1 z@1"));
  CHECK(told_by(*a) == told_by(*b));
  CHECK(told_by(*a).size() == 4);
  auto late = world.node("late");
  REQUIRE(shows(*late, "b@1 z@1"));
  auto snapshot = late->store().snapshot().value();
  const VersionRow parent = snapshot->version(snapshot->model("z")->id, 1).value();
  CHECK(parent.undeleted_ns != 0);
  CHECK(snapshot->version(snapshot->model("b")->id, 1)->parents.at(0).id == parent.id);
  snapshot.reset();
  REQUIRE(remove_version(b->registry(), "z", 1).ok());
  REQUIRE(b->registry().undelete("z", 1, [](const Digest&) { return true; }).ok());  // the origin has it
  REQUIRE(shows(*a, "b@1 z@1"));
  REQUIRE(shows(*late, "b@1 z@1"));
}

// Waits until the node's next session reads the list, because its etcd was reset.
struct ReadsList {
  explicit ReadsList(RegistryNode& node) : node_(node), lists_(node.registry().status().lists) {}
  bool wait() {
    return eventually([this] {
      auto status = node_.registry().status();
      return status.connected && status.lists > lists_;
    });
  }
  RegistryNode& node_;
  std::uint64_t lists_;
};

Digest manifest_of(Store& store, const std::string& model, std::uint64_t number) {
  auto snapshot = store.snapshot().value();
  return snapshot->version(snapshot->model(model)->id, number)->manifest;
}

VersionRow row_of(RegistryNode& node, const std::string& model, std::uint64_t number) {
  auto snapshot = node.store().snapshot().value();
  return snapshot->version(snapshot->model(model)->id, number).value();
}

TEST_CASE("cluster: a removal with an identity removes no other version of the name") {
  World world;
  auto a = world.node("a");
  must(publish(*a, "m", {1}));
  must(publish(*a, "m", {2}));
  const VersionName second{"m", 2};
  const auto of_another = a->registry().remove_versions({&second, 1}, Tagged::removed, {}, row_of(*a, "m", 1).uid);
  REQUIRE(!of_another.ok());
  CHECK(of_another.error().code == Errc::changed);
  CHECK(a->registry().remove_versions({&second, 1}, Tagged::removed, {}, row_of(*a, "m", 2).uid).ok());
  CHECK(shows(*a, "m@1"));
}

bool knows_loss(RegistryNode& node) {
  return eventually([&] { return node.registry().status().lost.find("etcd lacks") != std::string::npos; });
}

ReconcileReport reconcile(RegistryNode& node, bool dry_run = false) {
  ReconcileRequest request;
  request.dry_run = dry_run;
  auto report = node.registry().reconcile(request);
  if (!report.ok()) FAIL(report.error().message);
  return *report;
}

TEST_CASE("cluster: an etcd that has lost history stops changes of names on all nodes until a reconciliation") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  REQUIRE(shows(*b, "m@1"));
  world.node("late");
  CHECK(reconcile(*a).returned.empty());
  world.etcd.save();
  REQUIRE(b->wait_connected());
  must(publish(*b, "m", {2}));
  REQUIRE(shows(*a, "m@1 m@2"));
  world.etcd.set_back();
  auto late = world.node("late");  // does not know the second version
  RegistryNode* const nodes[] = {late.get(), a.get(), b.get()};
  for (RegistryNode* node : nodes) REQUIRE(knows_loss(*node));
  for (RegistryNode* node : nodes) {
    const auto refused = publish(*node, "m", {3});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::unreachable);
    CHECK(refused.error().message.find("`weft cluster reconcile`") != std::string::npos);
    CHECK_FALSE(node->registry().set_tag("m", "best", 1).ok());
    CHECK_FALSE(remove_version(node->registry(), "m", 1).ok());
  }
  CHECK(names_of(a->store()) == "m@1 m@2");
  b.reset();  // a node that starts again knows it still
  b = world.node("b");
  REQUIRE(knows_loss(*b));
  CHECK(reconcile(*a, true).returned == std::vector<std::string>{"m@2"});
  const ReconcileReport report = reconcile(*late);
  CHECK(report.returned == std::vector<std::string>{"m@2"});
  CHECK(report.renumbered.empty());
  CHECK(report.waits_for.empty());
  CHECK(report.problems.empty());
  for (std::uint64_t number = 3; number < 6; ++number) {
    RegistryNode* const publishers[] = {late.get(), a.get(), b.get()};
    auto made = publish(*publishers[number - 3], "m", {static_cast<unsigned>(number)});
    must(made);
    CHECK(made->version.number == number);
  }
  for (ClusterNode* node : {late.get(), a.get(), b.get()}) REQUIRE(shows(*node, "m@1 m@2 m@3 m@4 m@5"));
  for (std::uint64_t number = 1; number < 6; ++number)
    CHECK(manifest_of(a->store(), "m", number) == manifest_of(late->store(), "m", number));
}

TEST_CASE("cluster: two versions of one number keep their content, and tags and children follow") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  REQUIRE(shows(*b, "m@1"));
  world.node("late");
  world.etcd.save();
  REQUIRE(a->wait_connected());
  REQUIRE(b->wait_connected());
  must(publish(*b, "m", {2}));
  REQUIRE(b->registry().set_tag("m", "best", 2).ok());
  PublishRequest child;
  child.parents = {{"m", 2, true, 0, 0, 0}};
  must(publish(*a, "z", {3}, child));
  REQUIRE(a->registry().describe("m", 1, {"checked", {{"loss", "0.5"}}}).ok());
  REQUIRE(shows(*a, "m@1 m@2 m:best=2 z@1"));
  REQUIRE(shows(*b, "m@1 m@2 m:best=2 z@1"));
  const Uuid second = row_of(*a, "m", 2).uid;
  a.reset();
  b.reset();
  world.etcd.set_back();
  auto late = world.node("late");
  must(publish(*late, "m", {4}));
  REQUIRE(late->registry().set_tag("m", "late", 2).ok());
  const Uuid other = row_of(*late, "m", 2).uid;
  a = world.node("a");
  b = world.node("b");
  REQUIRE(knows_loss(*a));
  CHECK(row_of(*a, "m", 2).uid == second);  // reads go on
  const ReconcileReport report = reconcile(*b);
  CHECK(report.renumbered == std::vector<Renumbered>{{"m", 2, 3}});
  for (ClusterNode* node : {late.get(), a.get(), b.get()}) {
    REQUIRE(shows(*node, "m@1 m@2 m@3 m:best=3 m:late=2 z@1"));
    CHECK(row_of(*node, "m", 2).uid == other);
    CHECK(row_of(*node, "m", 3).uid == second);
    CHECK(row_of(*node, "m", 3).manifest == sha256(testing::manifest_of({{2}})));
    CHECK(row_of(*node, "m", 1).message == "checked");
    const auto parents = row_of(*node, "z", 1).parents;
    REQUIRE(parents.size() == 1);
    CHECK(parents[0].number == 3);
    CHECK(parents[0].id == row_of(*node, "m", 3).id);
  }
  REQUIRE(remove_version(late->registry(), "m", 2).ok());
  REQUIRE(shows(*b, "m@1 m@3 m:best=3 z@1"));
  // A rebuild of the index replays the new number.
  b.reset();
  const auto rebuilt = Store::rebuild(world.dir / "b", testing::decode, no_progress());
  REQUIRE(rebuilt.ok());
  CHECK(rebuilt->problems.empty());
  b = world.node("b");
  CHECK(shows(*b, "m@1 m@3 m:best=3 z@1"));
  CHECK(b->registry().status().lost.empty());
}

TEST_CASE("cluster: an empty etcd gets the registry again from its nodes") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  must(publish(*b, "m", {2}));
  must(publish(*b, "gone", {3}));
  REQUIRE(a->registry().set_tag("m", "best", 2).ok());
  REQUIRE(remove_version(b->registry(), "gone", 1).ok());
  REQUIRE(shows(*a, "m@1 m@2 m:best=2"));
  world.etcd.forget();
  world.etcd.restart();
  REQUIRE(eventually([&] { return a->registry().status().trouble.find("was lost") != std::string::npos; }));
  const ReconcileReport report = reconcile(*b);
  CHECK(report.returned.size() == 3);
  auto fresh = world.node("fresh");
  for (ClusterNode* node : {a.get(), b.get(), fresh.get()}) REQUIRE(shows(*node, "m@1 m@2 m:best=2"));
  CHECK(row_of(*fresh, "gone", 1).removed);
  must(publish(*fresh, "m", {4}));
  CHECK(shows(*a, "m@1 m@2 m@3 m:best=2"));
}

// The last change that both nodes know and that the registry then loses.
struct LostChange {
  const char* name;
  std::function<Status(RegistryNode&)> lose;
};

void check_set_back(const LostChange& lost) {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  must(publish(*a, "other", {3}));
  REQUIRE(a->registry().set_tag("m", "t", 1).ok());
  auto c = world.node("c");
  c.reset();
  world.etcd.save();
  REQUIRE(a->wait_connected());
  REQUIRE(b->wait_connected());
  REQUIRE(lost.lose(*a).ok());
  const std::string known = names_of(a->store());
  REQUIRE(shows(*b, known));
  a.reset();
  b.reset();
  world.etcd.set_back();
  c = world.node("c");
  for (unsigned content = 10; content < 20; ++content) must(publish(*c, "n" + std::to_string(content), {content}));
  b = world.node("b");
  CHECK_MESSAGE(knows_loss(*b), lost.name, ": both knew ", known, ", then ", names_of(b->store()));
  reconcile(*b);
  a = world.node("a");
  const std::string after = known + " n10@1 n11@1 n12@1 n13@1 n14@1 n15@1 n16@1 n17@1 n18@1 n19@1";
  const auto sorted = [](const std::string& names) {
    std::istringstream words(names);
    std::multiset<std::string> out;
    for (std::string word; words >> word;) out.insert(word);
    return out;
  };
  for (ClusterNode* node : {a.get(), b.get(), c.get()})
    CHECK_MESSAGE(eventually([&] { return sorted(names_of(node->store())) == sorted(after); }), lost.name, ": ",
                  names_of(node->store()));
  // Afterwards the mirror continues without a list.
  b.reset();
  must(publish(*a, "m", {30}));
  b = world.node("b");
  CHECK(shows(*b, names_of(a->store())));
  CHECK(b->registry().status().lists == 0);
}

TEST_CASE("cluster: a set-back etcd is detected also when it has reached the old revision again") {
  const LostChange changes[] = {
      {"a publish",
       [](RegistryNode& node) {
         auto outcome = publish(node, "m", {2});
         return outcome.ok() ? Status{} : Status(outcome.error());
       }},
      {"a new tag", [](RegistryNode& node) { return node.registry().set_tag("m", "u", 1); }},
      {"a tag's end", [](RegistryNode& node) { return node.registry().set_tag("m", "t", std::nullopt); }},
      {"a removal", [](RegistryNode& node) { return remove_version(node.registry(), "other", 1); }},
  };
  std::vector<std::future<void>> checks;  // each mostly waits
  for (const LostChange& lost : changes) checks.push_back(std::async(std::launch::async, check_set_back, lost));
  for (auto& check : checks) check.get();
}

TEST_CASE("cluster: a publish that this node cannot show as it is fails") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  must(publish(*a, "m", {1}));
  must(publish(*a, "other", {2}));
  REQUIRE(shows(*b, "m@1 other@1"));
  // The registry's record of a version names other content than this node's.
  RegistryKeys keys(world.options.prefix, world.options.cluster);
  etcd::Client client(world.options);
  const std::string key = keys.version("m", 1);
  auto known = client.range({{key, {}}, 0, 0, false, false});
  REQUIRE(known.ok());
  auto record = open_version(known->items.at(0).value, keys.bound(key));
  REQUIRE(record.ok());
  record->version.manifest = manifest_of(a->store(), "other", 1);
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, seal(*record, keys.bound(key)), 0});
  REQUIRE(client.txn(txn).ok());
  auto failed = publish(*b, "m", {2});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().code == Errc::exists);
  CHECK(failed.error().message.find("m@1") != std::string::npos);
}

TEST_CASE("cluster: values that do not verify are named and stop nothing") {
  World world;
  auto a = world.node("a");
  RegistryKeys keys(world.options.prefix, world.options.cluster);
  etcd::Client client(world.options);
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{keys.version("bad", 1), {std::byte{1}}, 0});
  txn.then.emplace_back(etcd::Put{keys.version("other", 1).substr(0, 24) + "\x1b[2J", {}, 0});
  txn.then.emplace_back(etcd::Put{keys.tag("m", "x"), seal(RegistryTag{1, 1}, "t/m@other"), 0});
  txn.then.emplace_back(etcd::Put{keys.member("8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a7de"), {}, 0});
  REQUIRE(client.txn(txn).ok());
  must(publish(*a, "m", {1}));
  CHECK(names_of(a->store()) == "m@1");
  auto status = a->registry().status();
  CHECK(status.refused == 4);
  bool named = false;
  for (const std::string& refusal : status.refusals) named = named || refusal.find("v/bad@") != std::string::npos;
  CHECK(named);
  auto b = world.node("b");
  CHECK(shows(*b, "m@1"));
  CHECK(b->registry().status().refused >= 3);
}

TEST_CASE("cluster: members come, are seen, and go") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  CHECK(eventually([&] { return a->registry().members().size() == 2; }));
  CHECK(eventually([&] { return b->registry().members().size() == 2; }));
  auto members = a->registry().members();
  CHECK(members[0].node != members[1].node);
  for (const Member& member : members) CHECK(member.key_proof == "proof of " + member.name);
  const auto present = [](const std::vector<KnownNode>& nodes) {
    return std::ranges::count_if(nodes, [](const KnownNode& node) { return node.present; });
  };
  CHECK(present(a->registry().nodes()) == 2);
  const std::string node_b = b->store().cluster()->node;
  CHECK(a->registry().forget_node(node_b).error().code == Errc::busy);
  b->registry().set_key_proof("another proof");
  const auto proof_of_b = [node = node_b](const std::vector<Member>& of) {
    const auto found = std::ranges::find(of, node, &Member::node);
    return found == of.end() ? std::string("none") : found->key_proof;
  };
  CHECK(eventually([&] { return proof_of_b(a->registry().members()) == "another proof"; }));
  CHECK(a->registry().members().size() == 2);
  b.reset();
  CHECK(eventually([&] { return a->registry().members().size() == 1; }));
  CHECK(a->registry().nodes().size() == 2);
  CHECK(present(a->registry().nodes()) == 1);
  CHECK(name_of_node(a->registry(), node_b).ends_with("b"));
  b = world.node("b");
  CHECK(eventually([&] { return a->registry().members().size() == 2; }));
  CHECK(present(a->registry().nodes()) == 2);
  CHECK(proof_of_b(a->registry().members()).starts_with("proof of "));
}

TEST_CASE("cluster: a node is known by its name after it and all others have ended, until it is forgotten") {
  World world;
  std::string node_b;
  std::uint64_t first_ns = 0;
  {
    auto a = world.node("a");
    auto b = world.node("b");
    node_b = b->store().cluster()->node;
    const auto is_recorded = [&] {
      const auto nodes = a->registry().nodes();
      const auto found = std::ranges::find(nodes, node_b, &KnownNode::node);
      first_ns = found == nodes.end() ? 0 : found->first_ns;
      return first_ns != 0;
    };
    CHECK(eventually(is_recorded));
  }
  auto a = world.node("a");
  REQUIRE(eventually([&] { return a->registry().nodes().size() == 2; }));
  const auto nodes = a->registry().nodes();
  const auto found = std::ranges::find(nodes, node_b, &KnownNode::node);
  REQUIRE(found != nodes.end());
  CHECK_FALSE(found->present);
  CHECK(found->name.ends_with("b"));
  CHECK(found->last_ns >= found->first_ns);
  CHECK(a->registry().forget_node(node_b).ok());
  CHECK(eventually([&] { return a->registry().nodes().size() == 1; }));
  CHECK(name_of_node(a->registry(), node_b) == "node " + node_b);
  CHECK(a->registry().forget_node(node_b).error().code == Errc::not_found);
}

TEST_CASE("cluster: a node that has left acknowledges no change, and may leave again") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  const std::string node_b = b->store().cluster()->node;
  REQUIRE(eventually([&] { return a->registry().nodes().size() == 2; }));
  must(publish(*b, "before", {1}));
  CHECK(b->registry().forget_node(node_b).ok());
  CHECK(publish(*b, "after", {2}).error().code == Errc::unreachable);
  CHECK(b->registry().set_tag("before", "tag", 1, {}).error().code == Errc::unreachable);
  CHECK(b->registry().forget_node(node_b).ok());
  CHECK(publish(*a, "after", {3}).ok());
}

TEST_CASE("cluster: a copy of a store does not run beside its original, and goes on when that has ended") {
  World world;
  auto a = world.node("a");
  a.reset();
  std::filesystem::copy((world.dir / "a"), (world.dir / "copy"), std::filesystem::copy_options::recursive);
  a = world.node("a");
  REQUIRE(publish(*a, "m", {1}).ok());
  auto copy = world.node("copy");
  const auto refused = publish(*copy, "m", {2});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Errc::exists);
  CHECK(refused.error().message.find("another weftd is this node already: " + std::string(world.dir / "a")) == 0);
  CHECK(eventually([&] { return copy->refusals() == 1; }));
  CHECK(publish(*a, "m", {3}).ok());
  CHECK(a->refusals() == 0);
  a.reset();
  CHECK(eventually([&] { return publish(*copy, "m", {4}).ok(); }));
  CHECK(copy->refusals() == 1);
}

TEST_CASE("cluster: a publish waits for the lease of a weftd that has ended with another copy of the store") {
  World world;
  auto a = world.node("a");
  etcd::Client client(world.options);
  const RegistryKeys keys(world.options.prefix, world.options.cluster);
  const std::string key = keys.member(a->store().cluster()->node);
  auto known = client.range(etcd::query_of(key));
  REQUIRE(eventually([&] {  // the node follows the registry before it has announced itself
    known = client.range(etcd::query_of(key));
    return known.ok() && known->items.size() == 1;
  }));
  Member ended = open_member(known->items[0].value, keys.bound(key)).value();
  a.reset();
  ended.process = "another";
  ended.place = "elsewhere";
  const auto lease = client.grant_lease(2);
  REQUIRE(lease.ok());
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, seal(ended, keys.bound(key)), lease->id});
  REQUIRE(client.txn(txn).ok());
  a = world.node("a");
  CHECK(publish(*a, "m", {1}).ok());
  CHECK(a->refusals() == 0);
}

TEST_CASE("cluster: a node whose key was deleted announces itself again, and one that was killed comes back at once") {
  World world;
  auto a = world.node("a");
  auto b = world.node("b");
  CHECK(eventually([&] { return b->registry().members().size() == 2; }));
  etcd::Client client(world.options);
  const RegistryKeys keys(world.options.prefix, world.options.cluster);
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Delete{{keys.member(a->store().cluster()->node), {}}});
  REQUIRE(client.txn(txn).ok());
  CHECK(eventually([&] { return b->registry().members().size() == 1; }));
  CHECK(eventually([&] { return b->registry().members().size() == 2; }));
  Member before;  // of a weftd that was killed
  const std::string key = keys.member(b->store().cluster()->node);
  const auto known = client.range(etcd::query_of(key));
  REQUIRE((known.ok() && known->items.size() == 1));
  before = open_member(known->items[0].value, keys.bound(key)).value();
  b.reset();
  before.process = "another";
  txn.then = {etcd::Put{key, seal(before, keys.bound(key)), 0}};
  REQUIRE(client.txn(txn).ok());
  b = world.node("b");
  CHECK(publish(*b, "m", {1}).ok());
  CHECK(b->refusals() == 0);
}

TEST_CASE("cluster: a store of another cluster, or with versions of its own, does not join") {
  World world;
  world.node("a");
  world.etcd.forget();
  world.etcd.restart();
  auto a = world.node("a", false);
  CHECK(eventually([&] { return a->registry().status().trouble.find("cluster") != std::string::npos; }));
  CHECK(publish(*a, "m", {1}).error().code == Errc::unreachable);
  testing::TestStore own;
  testing::must_publish(*testing::open_store(own.path), "m", {{1}});
  auto store = ClusterStore::open(own.path, testing::write_options());
  REQUIRE(store.ok());
  ClusterOptions options;
  options.etcd = world.options;
  CHECK(cluster_registry(**store, (*store)->mirror(), options).error().code == Errc::invalid);
}

TEST_CASE("cluster: an etcd that hangs is noticed, and changes end in a bounded time") {
  World world;
  auto a = world.node("a");
  must(publish(*a, "m", {1}));
  world.etcd.pause();
  auto begun = std::chrono::steady_clock::now();
  CHECK_FALSE(publish(*a, "m", {2}).ok());
  CHECK(a->wait_connected(false));
  CHECK(std::chrono::steady_clock::now() - begun < 20s);
  world.etcd.resume();
  CHECK(a->wait_connected());
  must(publish(*a, "m", {3}));
}

}  // namespace
}  // namespace weft

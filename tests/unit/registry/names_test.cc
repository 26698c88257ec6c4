// Changes of names in a real etcd: numbers, races, versions that a publish relies on, names that would hide others.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "fakes/etcd_process.h"
#include "fakes/http_server.h"
#include "http/client/http_client.h"
#include "registry/collections.h"
#include "registry/etcd_names.h"
#include "registry/etcd_restore.h"
#include "registry/own_registry.h"
#include "registry/purges.h"

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

namespace {

// One etcd for all tests of this file. Each test has its own cluster in it.
EtcdProcess& shared_etcd() {
  static EtcdProcess etcd;
  return etcd;
}

EtcdOptions options_for(const EtcdProcess& etcd) {
  EtcdOptions options;
  options.endpoints = {etcd.endpoint()};
  return options;
}

struct Cluster {
  explicit Cluster(const EtcdOptions& options = options_for(shared_etcd()))
      : keys("/weft", "c" + std::to_string(++count)), client(options) {}
  static inline int count = 0;
  RegistryKeys keys;
  etcd::Client client;
  OwnRegistry own{client, keys};
  EtcdNames names{own, 5s};
  EtcdRestore restore{own, names, 5s};
};

Digest digest(unsigned content) {
  Digest out;
  out.bytes[0] = static_cast<std::uint8_t>(content);
  out.bytes[1] = static_cast<std::uint8_t>(content >> 8U);
  return out;
}

PublishWish wish(std::string model, unsigned content, std::vector<std::string> tags = {},
                 std::vector<VersionName> relies = {}) {
  static std::atomic<std::uint64_t> time{1};
  PublishWish out;
  out.version.version.model_name = std::move(model);
  out.version.version.manifest = digest(content);
  out.version.version.time_ns = ++time;
  out.version.version.uid = {1, time};
  out.version.tree_nodes = 4;
  out.version.version.publisher = "8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a7de";
  out.tags = std::move(tags);
  out.relies = std::move(relies);
  return out;
}

std::uint64_t must_publish(Cluster& cluster, const PublishWish& what) {
  auto decision = cluster.names.publish(what);
  if (!decision.ok()) FAIL(decision.error().message);
  return decision.ok() ? decision->number : 0;
}

RegistryTag record_of(Cluster& cluster, const std::string& model, const std::string& tag) {
  auto key = cluster.keys.tag(model, tag);
  auto answer = cluster.client.range({{key, {}}, 0, 0, false, false});
  REQUIRE(answer.ok());
  return answer->items.empty() ? RegistryTag{} : open_tag(answer->items[0].value, cluster.keys.bound(key)).value();
}

std::optional<std::uint64_t> tag_of(Cluster& cluster, const std::string& model, const std::string& tag) {
  const std::uint64_t number = record_of(cluster, model, tag).number;
  return number != 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

TEST_CASE("names: numbers go up, equal content over the newest makes no version, its tags are set") {
  Cluster c;
  CHECK(must_publish(c, wish("a", 1)) == 1);
  CHECK(must_publish(c, wish("a", 2)) == 2);
  auto same = c.names.publish(wish("a", 2, {"best"}));
  REQUIRE(same.ok());
  CHECK_FALSE(same->made);
  CHECK(same->number == 2);
  CHECK(tag_of(c, "a", "best") == 2);
  CHECK(must_publish(c, wish("a", 1)) == 3);  // with another version in between, it does
  CHECK(must_publish(c, wish("b", 1)) == 1);
}

TEST_CASE("names: what was read ahead may be out of date") {
  Cluster c;
  auto ahead = c.names.foresee("early");
  REQUIRE(ahead != nullptr);
  CHECK(must_publish(c, wish("early", 1)) == 1);
  auto second = c.names.publish(wish("early", 2), ahead);  // `ahead` says that the model does not exist
  REQUIRE(second.ok());
  CHECK(second->made);
  CHECK(second->number == 2);
  auto same = c.names.publish(wish("early", 2), ahead);
  REQUIRE(same.ok());
  CHECK_FALSE(same->made);
  ahead = c.names.foresee("early");
  REQUIRE(c.names.remove_version("early", 2).ok());
  auto again = c.names.publish(wish("early", 2), ahead);  // `ahead` says that there is nothing to publish
  REQUIRE(again.ok());
  CHECK(again->made);
  CHECK(again->number == 3);
  ahead = c.names.foresee("child");
  auto gone = c.names.publish(wish("child", 4, {}, {{"early", 2}}), ahead);
  REQUIRE(!gone.ok());
  CHECK(gone.error().code == Errc::not_found);
  CHECK(gone.error().message.find("early@2") != std::string::npos);
}

TEST_CASE("names: many at once lose nothing and give no number twice") {
  Cluster c;
  constexpr int kThreads = 6;
  constexpr int kEach = 10;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::multiset<std::uint64_t> numbers;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      OwnRegistry own(c.client, c.keys);
      EtcdNames names(own, 60s);
      for (int i = 0; i < kEach; ++i) {
        auto decision = names.publish(wish("busy", static_cast<unsigned>(100 * t + i + 1)));
        std::lock_guard lock(mutex);
        if (decision.ok() && decision->made) numbers.insert(decision->number);
      }
    });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(numbers.size() == kThreads * kEach);
  std::uint64_t expected = 1;
  for (std::uint64_t number : numbers) CHECK(number == expected++);
}

TEST_CASE("names: the same content from many at once is one version") {
  Cluster c;
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  std::atomic<int> known{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      auto decision = c.names.publish(wish("once", 7));
      if (decision.ok()) ++(decision->made ? made : known);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(made == 1);
  CHECK(known == 5);
}

TEST_CASE("names: what a version relies on must live") {
  Cluster c;
  must_publish(c, wish("base", 1));
  CHECK(must_publish(c, wish("child", 2, {}, {{"base", 1}})) == 1);
  auto never = c.names.publish(wish("child", 3, {}, {{"base", 9}}));
  REQUIRE_FALSE(never.ok());
  CHECK(never.error().code == Errc::not_found);
  CHECK(never.error().message.find("base@9") != std::string::npos);
  REQUIRE(c.names.remove_version("base", 1).ok());
  CHECK(c.names.publish(wish("child", 3, {}, {{"base", 1}})).error().code == Errc::not_found);
}

TEST_CASE("names: more reliance than one transaction compares is still proved") {
  Cluster c;
  std::vector<VersionName> relies;
  for (unsigned i = 1; i <= limits::kEtcdOpsMax + 20; ++i) {
    must_publish(c, wish("many", i));
    relies.push_back({"many", i});
  }
  CHECK(must_publish(c, wish("child", 1, {}, relies)) == 1);
  REQUIRE(c.names.remove_version("many", 3).ok());
  auto gone = c.names.publish(wish("child", 2, {}, relies));
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().message.find("many@3") != std::string::npos);
}

TEST_CASE("names: a removal races publishes that rely on what it removes, and never leaves one without it") {
  Cluster c;
  for (unsigned round = 1; round <= 25; ++round) {
    std::uint64_t base = must_publish(c, wish("base", round));
    Result<PublishDecision> child = Error{};
    std::thread publisher([&] { child = c.names.publish(wish("child", round, {}, {{"base", base}})); });
    auto removed = c.names.remove_version("base", base);
    publisher.join();
    REQUIRE(removed.ok());
    if (child.ok())
      CHECK(child->revision < *removed);
    else
      CHECK(child.error().code == Errc::not_found);
  }
}

TEST_CASE("names: one model's name hides no other's while that one shows") {
  Cluster c;
  must_publish(c, wish("org/bert", 1));
  CHECK(c.names.publish(wish("org", 1)).error().code == Errc::exists);
  CHECK(c.names.publish(wish("org/bert/large", 1)).error().code == Errc::exists);
  CHECK(must_publish(c, wish("org/bert2", 1)) == 1);
  REQUIRE(c.names.remove_version("org/bert", 1).ok());
  CHECK(must_publish(c, wish("org/bert/large", 1)) == 1);
  CHECK(c.names.publish(wish("org/bert", 1)).error().code == Errc::exists);
  REQUIRE(c.names.remove_version("org/bert/large", 1).ok());
  CHECK(must_publish(c, wish("org/bert", 1)) == 2);  // no number is used twice
}

TEST_CASE("names: tags move, go, and go with their version") {
  Cluster c;
  must_publish(c, wish("a", 1, {"first", "best"}));
  must_publish(c, wish("a", 2));
  CHECK(tag_of(c, "a", "first") == 1);
  REQUIRE(c.names.set_tag("a", "best", 2).ok());
  CHECK(tag_of(c, "a", "best") == 2);
  CHECK(c.names.set_tag("a", "best", 3).error().code == Errc::not_found);
  CHECK(c.names.set_tag("a", "none", std::nullopt).error().code == Errc::not_found);
  for (int i = 0; i < 130; ++i) REQUIRE(c.names.set_tag("a", "t" + std::to_string(i), 1).ok());
  REQUIRE(c.names.remove_version("a", 1).ok());
  CHECK_FALSE(tag_of(c, "a", "first"));
  CHECK_FALSE(tag_of(c, "a", "t129"));
  CHECK(tag_of(c, "a", "best") == 2);
  CHECK(c.names.remove_version("a", 1).error().code == Errc::not_found);
  REQUIRE(c.names.set_tag("a", "best", std::nullopt).ok());
  CHECK_FALSE(tag_of(c, "a", "best"));
}

TEST_CASE("names: a protected tag is changed by its owner and by authors who are not bound, on every way") {
  Cluster c;
  const Author alice{"alice", "node1", true}, bob{"bob", "node2", true}, root{"root", "node2"};
  must_publish(c, wish("a", 1, {"best"}));
  must_publish(c, wish("a", 2));
  const RegistryTag before = record_of(c, "a", "best");
  CHECK(c.names.protect_tag("a", "none", true, alice).error().code == Errc::not_found);
  REQUIRE(c.names.protect_tag("a", "best", true, alice).ok());
  CHECK(record_of(c, "a", "best").owner == "alice");
  CHECK(record_of(c, "a", "best").time_ns == before.time_ns);
  REQUIRE(c.names.protect_tag("a", "best", true, root).ok());  // it is protected already
  CHECK(record_of(c, "a", "best").owner == "alice");

  const Result<std::uint64_t> refused = c.names.set_tag("a", "best", 2, bob);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Errc::permission);
  CHECK(refused.error().message ==
        "a@best: user bob may not change this tag: it is protected; expected alice, root or weftd's user");
  CHECK(c.names.set_tag("a", "best", {}, bob).error().code == Errc::permission);
  CHECK(c.names.protect_tag("a", "best", false, bob).error().code == Errc::permission);
  CHECK(c.names.remove_version("a", 1, {Tagged::removed, {}, bob}).error().code == Errc::permission);
  PublishWish moves = wish("a", 3, {"best", "new"});
  moves.by = bob;
  CHECK(c.names.publish(moves).error().code == Errc::permission);
  PublishWish repeats = wish("a", 2, {"best"});
  repeats.by = bob;
  CHECK(c.names.publish(repeats).error().code == Errc::permission);
  CHECK(tag_of(c, "a", "best") == 1);
  CHECK(!tag_of(c, "a", "new"));
  CHECK(must_publish(c, wish("a", 4)) == 3);  // the refused publish has used no number

  moves.by = alice;
  CHECK(must_publish(c, moves) == 4);
  CHECK(record_of(c, "a", "best").owner == "alice");
  REQUIRE(c.names.set_tag("a", "best", 2, root).ok());
  CHECK(record_of(c, "a", "best").owner == "alice");
  REQUIRE(c.names.protect_tag("a", "best", false, alice).ok());
  CHECK(c.names.set_tag("a", "best", 1, bob).ok());
  REQUIRE(c.names.protect_tag("a", "best", true, alice).ok());
  REQUIRE(c.names.set_tag("a", "best", {}, alice).ok());
  CHECK(c.names.set_tag("a", "best", 1, bob).ok());  // a deletion ends the protection
}

TEST_CASE("names: a tag's record says who set or deleted it, and a deletion is later than the tag") {
  Cluster c;
  PublishWish tagged = wish("a", 1, {"t"});
  tagged.by = {"alice", "node1"};
  must_publish(c, tagged);
  CHECK(record_of(c, "a", "t").by == tagged.by);
  PublishWish again = wish("a", 1, {"u"});
  again.by = {"bob", "node1"};
  must_publish(c, again);
  CHECK(record_of(c, "a", "u").by.user == "bob");
  const std::string key = c.keys.tag("a", "u");
  const std::uint64_t late = now_ns() + 1'000'000'000'000;  // a node whose clock is ahead has set the tag
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, seal(RegistryTag{1, late, {}, {1, 1}}, c.keys.bound(key)), 0});
  REQUIRE(c.client.txn(txn).ok());
  REQUIRE(c.names.set_tag("a", "u", std::nullopt, {"carol", "node2"}).ok());
  const RegistryTag deleted = record_of(c, "a", "u");
  CHECK(deleted.number == 0);
  CHECK(deleted.time_ns == late + 1);
  CHECK(deleted.by == Author{"carol", "node2"});
  CHECK(c.names.set_tag("a", "u", std::nullopt).error().code == Errc::not_found);
  REQUIRE(c.names.set_tag("a", "u", 1).ok());
  CHECK(tag_of(c, "a", "u") == 1);
  txn.then = {etcd::Put{key, {std::byte{1}}, 0}};
  REQUIRE(c.client.txn(txn).ok());
  CHECK(c.names.set_tag("a", "u", std::nullopt).ok());  // a value that does not verify
  CHECK_FALSE(tag_of(c, "a", "u"));
}

TEST_CASE("names: a change applies to no other version of the same number") {
  Cluster c;
  const PublishWish first = wish("a", 1);
  must_publish(c, first);
  const Uuid uid = first.version.version.uid, other{uid.high, uid.low + 1};
  const auto refused = [](const auto& result) { return !result.ok() && result.error().code == Errc::exists; };
  CHECK(refused(c.names.set_tag("a", "t", 1, {}, other)));
  CHECK(refused(c.names.describe("a", 1, {"text", {}}, other)));
  CHECK(refused(c.names.remove_version("a", 1, {Tagged::removed, {}, {}, other})));
  CHECK(c.names.set_tag("a", "t", 1, {}, uid).ok());
  CHECK(record_of(c, "a", "t").uid == uid);
  CHECK(c.names.remove_version("a", 1, {Tagged::removed, {}, {}, uid}).ok());
  UndeleteWish wish;
  wish.uid = other;
  CHECK(refused(c.names.undelete("a", 1, wish)));
  wish.uid = uid;
  CHECK(c.names.undelete("a", 1, wish).ok());
  CHECK(record_of(c, "a", "t").uid == uid);
}

TEST_CASE("names: a value that does not verify blocks only its own model, and the error names the key") {
  Cluster c;
  must_publish(c, wish("bad", 1));
  must_publish(c, wish("good", 1));
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{c.keys.version("bad", 1), {std::byte{1}}, 0});
  REQUIRE(c.client.txn(txn).ok());
  auto refused = c.names.publish(wish("bad", 2));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::corrupt);
  CHECK(refused.error().message.find("v/bad@0000000000000001") != std::string::npos);
  CHECK(must_publish(c, wish("good", 2)) == 2);
}

TEST_CASE("names: all nodes agree on what the cluster is") {
  Cluster c;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> ids;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      etcd::Header header;
      auto meta = c.own.agree("", header);
      std::lock_guard lock(mutex);
      ids.insert(meta.ok() ? meta->cluster : meta.error().message);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(ids.size() == 1);
  CHECK(ids.begin()->size() == 36);
}

TEST_CASE("names: no change is made in a registry that was replaced") {
  Cluster c;
  etcd::Header header;
  REQUIRE(c.own.agree("", header).ok());
  CHECK(must_publish(c, wish("a", 1, {"best"})) == 1);
  const auto ahead = c.names.foresee("a");
  REQUIRE(ahead != nullptr);
  const std::string key = c.keys.meta();
  const auto meta = c.client.range({{key, {}}, 0, 0, false, false});
  REQUIRE(meta.ok());
  const auto put = [&](std::vector<etcd::Op> ops) { REQUIRE(c.client.txn({{}, std::move(ops)}).ok()); };
  const auto refused = [](const auto& result, const std::string& has) {
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == Errc::not_found);
    CHECK(result.error().message.find("etcd has " + has + " at /weft/") == 0);
  };
  const auto refuses_all = [&](const std::string& has) {
    refused(c.names.publish(wish("a", 2), ahead), has);
    refused(c.names.publish(wish("a", 1)), has);
    refused(c.names.publish(wish("b", 1)), has);
    refused(c.names.set_tag("a", "other", 1), has);
    refused(c.names.set_tag("a", "best", {}), has);
    refused(c.names.remove_version("a", 1), has);
    refused(c.own.barrier("node", "x"), has);
  };
  put({etcd::Delete{{key, {}}}});
  refuses_all("nothing");
  put({etcd::Put{key, seal(RegistryMeta{kRegistryFormat, "8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a7de", 1}, c.keys.bound(key)),
                 0}});
  refuses_all("another cluster");
  put({etcd::Put{key, meta->items.at(0).value, 0}});
  CHECK(tag_of(c, "a", "best") == 1);
  CHECK_FALSE(tag_of(c, "a", "other"));
  CHECK(must_publish(c, wish("a", 2)) == 2);
}

TEST_CASE("names: with a user and a password, over two endpoints of which one is dead") {
  EtcdProcess etcd;
  for (const std::vector<std::string>& step : std::vector<std::vector<std::string>>{
           {"user", "add", "root:rootpw"},
           {"user", "grant-role", "root", "root"},
           {"role", "add", "weft"},
           {"role", "grant-permission", "weft", "readwrite", "--prefix=true", "/weft/"},
           {"user", "add", "node:secret"},
           {"user", "grant-role", "node", "weft"},
           {"auth", "enable"}})
    etcd.control(step);
  EtcdOptions options = options_for(etcd);
  Cluster nobody(options);
  CHECK(nobody.names.publish(wish("a", 1)).error().code == Errc::permission);
  options.endpoints.insert(options.endpoints.begin(), "http://127.0.0.1:1");
  options.user = "node";
  options.password = "wrong";
  Cluster stranger(options);
  CHECK(stranger.names.publish(wish("a", 1)).error().code == Errc::permission);
  options.password = "secret";
  Cluster node(options);
  CHECK(must_publish(node, wish("a", 1)) == 1);
  auto watch = node.client.watch(node.keys.all(), 1);
  REQUIRE(watch.ok());
  auto events = (*watch)->next(std::chrono::steady_clock::now() + 10s);
  REQUIRE(events.ok());
  CHECK(events->has_value());
}

TEST_CASE("names: over TLS, both sides known by their certificates") {
  EtcdProcess etcd({}, EtcdProcess::Wire::tls);
  EtcdOptions options = options_for(etcd);
  Cluster untrusting(options);
  CHECK(untrusting.names.publish(wish("a", 1)).error().code == Errc::permission);
  options.ca = etcd.certificate();
  Cluster unknown(options);
  CHECK_FALSE(unknown.names.publish(wish("a", 1)).ok());
  options.cert = etcd.certificate();
  options.key = etcd.key();
  Cluster known(options);
  CHECK(must_publish(known, wish("a", 1)) == 1);
  CHECK(known.client.watch(known.keys.all(), 1).ok());
}

TEST_CASE("names: an etcd that is killed and comes back has all that it took; one that hangs costs a bounded wait") {
  EtcdProcess etcd;
  EtcdOptions options = options_for(etcd);
  options.answer_max = 1'000ms;
  Cluster c(options);
  OwnRegistry own(c.client, c.keys);
  EtcdNames names(own, 1s);
  CHECK(must_publish(c, wish("a", 1)) == 1);
  etcd.kill();
  CHECK(names.publish(wish("a", 2)).error().code == Errc::unreachable);
  etcd.restart();
  CHECK(must_publish(c, wish("a", 2)) == 2);
  etcd.pause();
  auto begun = std::chrono::steady_clock::now();
  auto failed = names.publish(wish("a", 3));
  CHECK_FALSE(failed.ok());
  CHECK(std::chrono::steady_clock::now() - begun < 15s);
  etcd.resume();
  auto again = c.names.publish(wish("a", 3));
  REQUIRE(again.ok());
  CHECK(again->number == 3);
}

TEST_CASE("names: numbers that a node knows are not given again by a registry that does not know them") {
  Cluster c;
  CHECK(must_publish(c, wish("a", 1)) == 1);
  PublishWish known = wish("a", 2);
  known.number_min = 5;
  CHECK(must_publish(c, known) == 5);
  known = wish("a", 3);
  known.number_min = 2;
  CHECK(must_publish(c, known) == 6);
  REQUIRE(c.restore.raise("a", {3}).ok());
  CHECK(must_publish(c, wish("a", 4)) == 7);
  REQUIRE(c.restore.raise("a", {12}).ok());
  CHECK(must_publish(c, wish("a", 5)) == 12);
  REQUIRE(c.restore.raise("new", {4}).ok());
  CHECK(must_publish(c, wish("new", 6)) == 4);
}

TEST_CASE("names: a version of another store keeps its number, which no version of the cluster may have had") {
  Cluster c;
  CHECK(must_publish(c, wish("a", 1)) == 1);
  PublishWish given = wish("a", 2);
  given.version.version.number = 5;
  CHECK(must_publish(c, given) == 5);
  CHECK(must_publish(c, given) == 5);  // the same publish again, as after a lost answer
  PublishWish between = wish("a", 1);  // also with a content that another version has
  between.version.version.number = 3;
  CHECK(must_publish(c, between) == 3);
  PublishWish other = wish("a", 4);
  other.version.version.number = 3;
  CHECK(c.names.publish(other).error().code == Errc::exists);
  CHECK(must_publish(c, wish("a", 6)) == 6);
  PublishWish first = wish("new", 7);
  first.version.version.number = 2;
  CHECK(must_publish(c, first) == 2);
  CHECK(must_publish(c, wish("new", 8)) == 3);
}

TEST_CASE("names: a version that is brought back gives the registry a later message and metrics, and no earlier ones") {
  Cluster c;
  const PublishWish what = wish("a", 1);
  CHECK(must_publish(c, what) == 1);
  MirroredVersion version = what.version;
  version.version.number = 1;
  const auto bring_back = [&](std::uint64_t described_ns, const std::string& message, bool check_only) {
    version.version.described_ns = described_ns;
    version.version.message = message;
    return c.restore.bring_back(version, check_only).value();
  };
  const auto message = [&] {
    const std::string key = c.keys.version("a", 1);
    const auto answer = c.client.range({{key, {}}, 0, 0, false, false});
    return open_version(answer->items.at(0).value, c.keys.bound(key)).value().version.message;
  };
  CHECK_FALSE(bring_back(0, "", false));
  CHECK(bring_back(7, "later", true));
  CHECK(message().empty());
  CHECK(bring_back(7, "later", false));
  CHECK(message() == "later");
  CHECK_FALSE(bring_back(7, "later", false));
  CHECK_FALSE(bring_back(6, "earlier", false));
  CHECK(message() == "later");
  version.version.uid = {9, 9};
  version.version.described_ns = 9;
  CHECK(c.restore.bring_back(version, false).error().code == Errc::exists);
  REQUIRE(c.names.remove_version("a", 1).ok());
  version.version.uid = what.version.version.uid;
  CHECK_FALSE(bring_back(9, "latest", false));
  CHECK(must_publish(c, wish("a", 3)) == 2);
}

namespace {

// A proxy between a node and an etcd. It forwards each request, and replaces the answers to `count` changes.
struct Liar {
  Liar(const std::string& endpoint, std::string lie)
      : http({{}, {}, {}, 1s, limits::kEtcdAnswerMax}), server([this, endpoint, lie](int fd, auto& path, auto& body) {
          const bool changes = body.find("request_put") != body.npos || body.find("request_delete") != body.npos;
          if (changes && before) std::exchange(before, nullptr)();
          auto answer = http.post(endpoint + path, body, {}, std::chrono::steady_clock::now() + 5s);
          REQUIRE(answer.ok());
          if (changes && count > 0) {
            --count;
            if (meanwhile) meanwhile();
            return send_text(fd, lie);
          }
          send_text(fd, http_answer(answer->status, answer->body));
        }) {}
  HttpClient http;
  std::atomic<int> count{1};
  std::function<void()> meanwhile;  // runs before a false answer
  std::function<void()> before;     // runs once, before a change is forwarded
  HttpServer server;
};

const std::string kLies[] = {
    http_answer(503, R"({"code":14,"message":"etcdserver: server stopped"})"),
    http_answer(503, R"({"code":14,"message":"transport is closing"})"),
    http_answer(408, R"({"code":1,"message":"context canceled"})"),
    http_answer(429, R"({"code":8,"message":"etcdserver: mvcc: database space exceeded"})"),
    http_answer(200, R"({"header":{"revision":"1"}})"),  // the answer to the second of two identical changes
    http_answer(200, std::string(limits::kEtcdAnswerMax + 1, ' ')),
};

}  // namespace

TEST_CASE("names: a change that etcd has made is made, whatever it answers") {
  for (const std::string& lie : kLies) {
    CAPTURE(lie.substr(0, 200));
    Liar liar(shared_etcd().endpoint(), lie);
    EtcdOptions options;
    options.endpoints = {liar.server.endpoint(), shared_etcd().endpoint()};
    Cluster c(options);
    PublishWish what = wish("a", 1, {"t"});
    auto decision = c.names.publish(what);
    if (!decision.ok()) FAIL(decision.error().message);
    CHECK(decision->made);
    CHECK(decision->number == 1);
    CHECK(tag_of(c, "a", "t") == 1);
  }
}

TEST_CASE("names: a publish whose answer is lost is made once, though others publish or remove before the next look") {
  for (const bool removed : {false, true}) {
    CAPTURE(removed);
    Liar liar(shared_etcd().endpoint(), kLies[0]);
    EtcdOptions options;
    options.endpoints = {liar.server.endpoint()};
    Cluster c(options);
    etcd::Client direct(options_for(shared_etcd()));
    OwnRegistry own(direct, c.keys);
    EtcdNames other(own, 5s);
    liar.meanwhile = [&] {
      CHECK(other.publish(wish("a", 2, {"t"})).ok());
      if (removed) CHECK(other.remove_version("a", 1).ok());
    };
    auto decision = c.names.publish(wish("a", 1, {"t"}));
    if (!decision.ok()) FAIL(decision.error().message);
    CHECK(decision->made);
    CHECK(decision->number == 1);
    CHECK(tag_of(c, "a", "t") == 2);
    CHECK(must_publish(c, wish("a", 3)) == 3);
  }
}

TEST_CASE("names: a tag or a removal that etcd has made is made, though its answer is lost") {
  Liar liar(shared_etcd().endpoint(), kLies[0]);
  EtcdOptions options;
  options.endpoints = {liar.server.endpoint()};
  Cluster c(options);
  CHECK(must_publish(c, wish("a", 1)) == 1);
  CHECK(must_publish(c, wish("a", 2)) == 2);
  liar.count = 1;
  CHECK(c.names.set_tag("a", "t", 1).ok());
  liar.count = 1;
  CHECK(c.names.set_tag("a", "t", std::nullopt).ok());
  liar.count = 1;
  CHECK(c.names.remove_version("a", 2).ok());
  CHECK(c.names.remove_version("a", 2).error().code == Errc::not_found);
  CHECK(c.names.set_tag("a", "t", std::nullopt).error().code == Errc::not_found);
}

TEST_CASE("names: a change is not tried again once the client has stopped") {
  Cluster c;
  CHECK(must_publish(c, wish("a", 1, {"t"})) == 1);
  OwnRegistry own(c.client, c.keys);
  EtcdNames patient(own, 60s);
  c.client.stop(0s);
  const auto begun = std::chrono::steady_clock::now();
  CHECK_FALSE(patient.set_tag("a", "t", std::nullopt).ok());
  CHECK_FALSE(patient.publish(wish("a", 2)).ok());
  CHECK(std::chrono::steady_clock::now() - begun < 10s);
}

TEST_CASE("names: a publish that a full etcd refuses says so") {
  EtcdProcess etcd({"--quota-backend-bytes", "16384"});  // smaller than an empty database
  Cluster c(options_for(etcd));
  static_cast<void>(c.names.publish(wish("a", 1)));
  CHECK(c.names.publish(wish("b", 2)).error().code == Errc::no_space);
}

namespace {

// A cluster that one node reaches through a proxy, and another one directly.
struct Raced {
  Liar liar{shared_etcd().endpoint(), kLies[0]};
  EtcdOptions options;
  std::optional<Cluster> slow;
  etcd::Client direct{options_for(shared_etcd())};
  std::optional<OwnRegistry> own;
  std::optional<EtcdNames> other;
  Raced() {
    liar.count = 0;
    options.endpoints = {liar.server.endpoint()};
    slow.emplace(options);
    own.emplace(direct, slow->keys);
    other.emplace(*own, 5s);
  }
};

MirroredVersion lacked(const std::string& model, unsigned content, bool removed) {
  MirroredVersion version = wish(model, content).version;
  version.version.model_name = model;
  version.version.number = 1;
  version.version.removed = removed;
  version.version.removed_ns = removed ? 5 : 0;
  return version;
}

// Brings back what is lacking, and returns the reasons of the changes that the registry refuses.
std::vector<std::string> reconcile(Cluster& c, const Lacking& lacking, Impossible& impossible) {
  std::vector<std::string> reasons;
  const auto refused = [&](const Error& error) { reasons.push_back(error.message); };
  const Status done = c.restore.reconcile(lacking, UINT64_MAX, impossible, refused);
  if (!done.ok()) FAIL(done.error().message);
  return reasons;
}

std::optional<RegistryTombstone> tombstone_of(Cluster& c, const std::string& model) {
  const std::string key = c.keys.tombstone(model, 1);
  const auto answer = c.client.range({{key, {}}, 0, 0, false, false});
  if (answer->items.empty()) return {};
  return open_tombstone(answer->items[0].value, c.keys.bound(key)).value();
}

bool is_purged(Cluster& c, const std::string& model) {
  return !c.client.range({{c.keys.purge(model, 1), {}}, 0, 0, false, false})->items.empty();
}

}  // namespace

TEST_CASE("names: a purged version comes back with its purge, and is not undeleted in between") {
  Cluster c;
  const MirroredVersion lost = lacked("lost", 1, true);
  const PublishWish live = wish("live", 2);
  must_publish(c, live);
  MirroredVersion removed = live.version;
  removed.version.number = 1;
  removed.version.removed = true;
  removed.version.removed_ns = UINT64_MAX >> 1U;
  Lacking lacking;
  lacking.versions = {lost, removed};
  for (const MirroredVersion& one : lacking.versions) {
    const VersionRow& row = one.version;
    lacking.purged.emplace(VersionKey(row.model_name, row.uid),
                           PurgedVersion{{row.model_name, row.number}, row.uid, 77, {"ada", "there"}});
  }
  Impossible impossible;
  CHECK(reconcile(c, lacking, impossible).empty());
  for (const char* model : {"lost", "live"}) {
    CAPTURE(model);
    CHECK(tombstone_of(c, model).has_value());
    CHECK(is_purged(c, model));
    const auto refused = c.names.undelete(model, 1, {});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("by ada on node there") != std::string::npos);
    const auto item = c.client.range({{c.keys.purge(model, 1), {}}, 0, 0, false, false})->items.at(0);
    CHECK(open_purge(item.value, c.keys.bound(item.key))->time_ns == 77);
  }
}

TEST_CASE("names: a purge decides against an undelete in a lost history") {
  Cluster c;
  const PublishWish what = wish("m", 1);
  must_publish(c, what);
  REQUIRE(c.names.remove_version("m", 1).ok());
  Purges purges(c.own);
  REQUIRE(purges.put({{"m", 1}, what.version.version.uid}).ok());
  Lacking lacking;
  lacking.versions = {what.version};
  VersionRow& row = lacking.versions[0].version;
  row.number = 1;
  row.undeleted_ns = tombstone_of(c, "m")->version.version.removed_ns + 7;
  Impossible impossible;
  CHECK(reconcile(c, lacking, impossible).empty());
  CHECK(impossible.empty());
  CHECK(tombstone_of(c, "m").has_value());
  CHECK(is_decided_later(tombstone_of(c, "m")->version.version, row));
}

TEST_CASE("names: a version that is brought back hides no model that was published meanwhile") {
  Raced raced;
  Lacking lacking;
  lacking.versions = {lacked("org/x", 1, false)};
  raced.liar.before = [&] { CHECK(raced.other->publish(wish("org", 2)).ok()); };
  Impossible impossible;
  CHECK(reconcile(*raced.slow, lacking, impossible).empty());
  const auto there = raced.direct.range({{raced.slow->keys.version("org/x", 1), {}}, 0, 0, false, false});
  CHECK(there->items.empty());
  CHECK(reconcile(*raced.slow, lacking, impossible).size() == 1);
}

TEST_CASE("names: a purge is tried again if the record of its version is put again meanwhile") {
  Raced raced;
  const PublishWish what = wish("m", 1);
  must_publish(*raced.slow, what);
  REQUIRE(raced.slow->names.remove_version("m", 1).ok());
  raced.liar.before = [&] {
    const std::string key = raced.slow->keys.tombstone("m", 1);
    const auto now = raced.direct.range({{key, {}}, 0, 0, false, false});
    CHECK(raced.own->put_again(key, now->items[0].value, now->items[0].mod_revision).value().has_value());
  };
  Purges purges(raced.slow->own);
  CHECK(purges.put({{"m", 1}, what.version.version.uid}).ok());
  CHECK(is_purged(*raced.slow, "m"));
}

TEST_CASE("names: purges that the registry cannot have are reported, and stop no others") {
  Cluster c;
  Purges purges(c.own);
  std::vector<PurgedVersion> all;
  etcd::Txn lose;
  for (const char* model : {"bad", "good", "live"}) {
    const PublishWish what = wish(model, 1);
    must_publish(c, what);
    REQUIRE(c.names.remove_version(model, 1).ok());
    all.push_back({{model, 1}, what.version.version.uid});
    REQUIRE(purges.put(all.back()).ok());
    lose.then.emplace_back(etcd::Delete{{c.keys.purge(model, 1), {}}});
  }
  lose.then.emplace_back(etcd::Put{c.keys.tombstone("bad", 1), {std::byte{1}}, 0});
  REQUIRE(c.client.txn(lose).ok());
  REQUIRE(c.names.undelete("live", 1, {}).ok());
  all.push_back({{"absent", 1}, all.front().uid});
  std::vector<std::string> refused;
  Impossible impossible;
  const Status back = purges.bring_back(all, impossible, [&](const Error& error) { refused.push_back(error.message); });
  if (!back.ok()) FAIL(back.error().message);
  CHECK(is_purged(c, "good"));
  CHECK_FALSE(is_purged(c, "live"));
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].find("bad@") != std::string::npos);
  CHECK(refused[1].find("live@1: it was brought back meanwhile") != std::string::npos);
  CHECK(impossible.has(all[0]));
  CHECK_FALSE(impossible.has(all[1]));
  CHECK(impossible.has(all[2]));
  VersionRow live;
  live.model_name = "live";
  live.uid = all[2].uid;
  CHECK_FALSE(impossible.has(live));  // the version itself, such as a later message, can come back
}

TEST_CASE("names: a collection that does not verify stops no reconciliation") {
  Cluster c;
  Collections collections(c.own);
  REQUIRE(collections.announce({"0123456789abcdef", 3, 5}).ok());
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{c.keys.collection(), {std::byte{1}}, 0});
  REQUIRE(c.client.txn(txn).ok());
  CHECK(collections.bring_back().ok());
}

TEST_CASE("names: the tags of a version that the registry refuses are not tried") {
  Cluster c;
  must_publish(c, wish("m", 1));
  Lacking lacking;
  lacking.versions = {lacked("m", 2, false)};
  lacking.versions[0].version.kind = VersionKind::dataset;
  lacking.tags = {{"m", "best", 1, 5, 6, {}, lacking.versions[0].version.uid, 7}};
  Impossible impossible;
  CHECK(reconcile(c, lacking, impossible).size() == 1);
  RegistryShare share;
  impossible.list(share);
  CHECK(share.refused.size() == 1);
}

TEST_CASE("names: the shares of a reconciliation are read even if they are many and large") {
  Cluster c;
  const std::vector<std::byte> large(limits::kRegistryRecordMax);
  for (int node = 0; node < 30; ++node) {
    const std::string id = "8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a7" + std::to_string(10 + node);
    if (node % 2 == 0) REQUIRE(c.own.complete_generation(id, {7, {}}).ok());
    etcd::Txn txn;
    txn.then.emplace_back(etcd::Put{c.keys.share(id), large, 0});
    if (node % 2 == 1) REQUIRE(c.client.txn(txn).ok());
  }
  const auto shares = c.own.shares();
  if (!shares.ok()) FAIL(shares.error().message);
  CHECK(shares->size() == 15);
  std::size_t count = 0;  // also if the caller cannot know that the values are large
  CHECK(etcd::each_page(c.client, {c.keys.all(KeyKind::share), 1'000, 0, false, false}, [&](const auto& page) {
          count += page.items.size();
        }).ok());
  CHECK(count == 30);
  CHECK(c.own.share(shares->begin()->first).value()->generation == 7);
  CHECK_FALSE(c.own.share("8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a711").value().has_value());
}

TEST_CASE("names: a removal or an undelete from a lost history replaces no later state") {
  Cluster c;
  must_publish(c, wish("m", 1));
  REQUIRE(c.names.remove_version("m", 1).ok());
  UndeleteWish undelete;
  REQUIRE(c.names.undelete("m", 1, undelete).ok());
  EtcdRemoval removal;
  removal.removed_ns = 5;
  CHECK(c.names.remove_version("m", 1, removal).error().code == Errc::exists);
  REQUIRE(c.names.remove_version("m", 1).ok());
  undelete.undeleted_ns = 6;
  CHECK(c.names.undelete("m", 1, undelete).error().code == Errc::exists);
}

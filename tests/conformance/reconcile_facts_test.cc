// A reconciliation brings back purges, collections, authors and protections, and reports what the registry refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "../unit/store/index_support.h"
#include "base/sha256.h"
#include "registry/etcd/etcd_client.h"
#include "registry_worlds.h"
#include "weft/store/commits.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

using namespace conformance;
using testing::EtcdProcess;
using testing::must;
using testing::TempDir;

// Nodes "knows" and "late". Etcd loses what `lost` changes on "knows", and has what `goes_on` changes on "late". Both
// changes are made in histories of their own, so that no node sees the loss before them.
struct Loss {
  EtcdProcess etcd;
  TempDir dir;
  EtcdOptions options = etcd_options(etcd);
  std::unique_ptr<ClusterNode> knows = node("knows"), late = node("late");

  std::unique_ptr<ClusterNode> node(const std::string& name) {
    return std::make_unique<ClusterNode>(dir / name, options);
  }
  // `third` is a further history: neither node sees it.
  void lose(
      const std::function<void(RegistryNode&)>& lost, const std::function<void(RegistryNode&)>& goes_on,
      const std::function<void()>& third = [] {}) {
    for (auto* node : {&knows, &late}) must((*node)->registry().catch_up(deadline()));
    knows.reset();
    late.reset();
    etcd.save("common");
    late = node("late");
    goes_on(*late);
    late.reset();
    etcd.save("without the loss");
    etcd.set_back("common");
    third();
    etcd.set_back("common");
    knows = node("knows");
    lost(*knows);
    etcd.kill();
    REQUIRE(knows->wait_connected(false));
    etcd.set_back("without the loss");
    late = node("late");
    for (auto* node : {&knows, &late})
      REQUIRE(eventually([&] { return (*node)->registry().status().lost.find("etcd lacks") != std::string::npos; }));
  }
  ReconcileReport reconcile() { return must(late->registry().reconcile({})); }
  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(60);
  }
};

VersionRow row_of(RegistryNode& node, const std::string& model, std::uint64_t number) {
  const auto snapshot = must(node.store().snapshot());
  return must(snapshot->version(must(snapshot->model(model)).id, number));
}

std::optional<TagRow> tag_of(RegistryNode& node, const std::string& model, const std::string& name) {
  std::optional<TagRow> found;
  const ModelId id = must(must(node.store().snapshot())->model(model)).id;
  must(each_row(node.store(), list_tags(id), [&](const TagRow& tag) -> Status {
    if (tag.name == name) found = tag;
    return {};
  }));
  return found;
}

}  // namespace

TEST_CASE("reconcile: a version that the registry cannot have is reported, and is no loss after the next start") {
  Loss loss;
  must(publish(*loss.knows, "m", {1}));
  loss.lose(
      [](RegistryNode& node) {
        must(publish(node, "org/x", {2}));
        REQUIRE(node.registry().set_tag("org/x", "best", 1).ok());
      },
      [](RegistryNode& node) { must(publish(node, "org", {3})); });
  const ReconcileReport report = loss.reconcile();
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("org/x") != std::string::npos);
  CHECK(report.problems[0].find("knows") != std::string::npos);
  CHECK(row_of(*loss.knows, "org/x", 1).manifest == sha256(testing::manifest_of({{2}})));
  loss.knows.reset();
  must(publish(*loss.late, "m", {4}));
  must(publish(*loss.late, "m", {5}));
  etcd::Client client(loss.options);
  const auto now = must(client.range({{"x", ""}, 0, 0, false, false}));
  loss.etcd.control({"compact", std::to_string(now.header.revision)});
  loss.knows = loss.node("knows");
  CHECK(eventually([&] { return names_of(loss.knows->store()).find("m@3") != std::string::npos; }));
  CHECK(loss.knows->registry().status().lists == 1);
  CHECK(loss.knows->registry().status().lost.empty());
  CHECK(publish(*loss.knows, "m", {6}).ok());
}

TEST_CASE("reconcile: a refused version comes back once the registry can have it") {
  Loss loss;
  must(publish(*loss.knows, "m", {1}));
  loss.lose([](RegistryNode& node) { must(publish(node, "org/x", {2})); },
            [](RegistryNode& node) { must(publish(node, "org", {3})); });
  REQUIRE(loss.reconcile().problems.size() == 1);
  REQUIRE(remove_version(loss.late->registry(), "org", 1).ok());
  CHECK(loss.reconcile().problems.empty());
  CHECK(eventually([&] { return names_of(loss.late->store()).find("org/x@1") != std::string::npos; }));
  const std::uint64_t generation = loss.reconcile().generation;
  CHECK(loss.reconcile().generation == generation);
}

TEST_CASE("reconcile: a version that was undeleted in the lost history and purged in the other one stays removed") {
  Loss loss;
  const Uuid uid = must(publish(*loss.knows, "m", {1})).version.uid;
  must(publish(*loss.knows, "other", {1}));
  REQUIRE(remove_version(loss.knows->registry(), "m", 1).ok());
  loss.lose(
      [](RegistryNode& node) {
        REQUIRE(node.registry().undelete("m", 1, [](const Digest&) { return false; }, {}).ok());
      },
      [&](RegistryNode& node) {
        REQUIRE(node.registry().purge({{"m", 1}, uid}).ok());
      });
  CHECK(loss.reconcile().problems.empty());
  for (ClusterNode* node : {loss.knows.get(), loss.late.get()}) {
    CHECK(eventually([&] { return row_of(*node, "m", 1).removed; }));
    CHECK(eventually([&] { return node->registry().purged().size() == 1; }));
  }
}

// Three histories of m@1: "late" undeletes it, then "old" removes it, and then "knows" undeletes it. The first loss
// leaves the first history, to which "knows" adds the third. The second loss leaves the second history.
TEST_CASE("reconcile: the later of two undeletes counts also if the registry loses history twice") {
  Loss loss;
  auto old = loss.node("old");
  must(publish(*loss.knows, "m", {1}));
  for (ClusterNode* node : {loss.knows.get(), loss.late.get(), old.get()})
    must(node->registry().catch_up(Loss::deadline()));
  old.reset();
  const auto undelete = [](RegistryNode& node) {
    REQUIRE(remove_version(node.registry(), "m", 1).ok());
    REQUIRE(node.registry().undelete("m", 1, [](const Digest&) { return true; }, {}).ok());
  };
  loss.lose(undelete, undelete, [&] {
    old = loss.node("old");
    REQUIRE(remove_version(old->registry(), "m", 1).ok());
    old.reset();
    loss.etcd.save("removed");
  });
  CHECK(loss.reconcile().problems.empty());
  const std::uint64_t undeleted_ns = row_of(*loss.knows, "m", 1).undeleted_ns;
  CHECK(eventually([&] { return row_of(*loss.late, "m", 1).undeleted_ns == undeleted_ns; }));
  loss.knows.reset();
  loss.late.reset();
  loss.etcd.set_back("removed");
  loss.late = loss.node("late");
  old = loss.node("old");
  CHECK(loss.reconcile().problems.empty());
  for (ClusterNode* node : {loss.late.get(), old.get()})
    CHECK(eventually([&] { return !row_of(*node, "m", 1).removed; }));
}

// As above, with removals and undeletes exchanged.
TEST_CASE("reconcile: the later of two removals counts also if the registry loses history twice") {
  Loss loss;
  auto old = loss.node("old");
  must(publish(*loss.knows, "m", {1}));
  for (ClusterNode* node : {loss.knows.get(), loss.late.get(), old.get()})
    must(node->registry().catch_up(Loss::deadline()));
  old.reset();
  const auto remove = [](RegistryNode& node) { REQUIRE(remove_version(node.registry(), "m", 1).ok()); };
  loss.lose(remove, remove, [&] {
    old = loss.node("old");
    remove(*old);
    REQUIRE(old->registry().undelete("m", 1, [](const Digest&) { return true; }, {}).ok());
    old.reset();
    loss.etcd.save("undeleted");
  });
  CHECK(loss.reconcile().problems.empty());
  const std::uint64_t removed_ns = row_of(*loss.knows, "m", 1).removed_ns;
  CHECK(eventually([&] { return row_of(*loss.late, "m", 1).removed_ns == removed_ns; }));
  loss.knows.reset();
  loss.late.reset();
  loss.etcd.set_back("undeleted");
  loss.late = loss.node("late");
  old = loss.node("old");
  CHECK(loss.reconcile().problems.empty());
  for (ClusterNode* node : {loss.late.get(), old.get()})
    CHECK(eventually([&] { return row_of(*node, "m", 1).removed; }));
}

// Both nodes know the purge, and both have restarted since etcd lost it.
TEST_CASE("reconcile: a purge that etcd alone has lost comes back from a store, with its author") {
  Loss loss;
  const Uuid uid = must(publish(*loss.knows, "m", {1})).version.uid;
  REQUIRE(remove_version(loss.knows->registry(), "m", 1).ok());
  loss.etcd.save("without the purge");
  REQUIRE(loss.knows->wait_connected());
  REQUIRE(loss.knows->registry().purge({{"m", 1}, uid, 0, {"eve", {}}}).ok());
  CHECK(loss.knows->registry().purged().size() == 1);
  must(loss.late->registry().catch_up(Loss::deadline()));
  CHECK(loss.late->registry().purged().size() == 1);
  loss.knows.reset();
  loss.late.reset();
  loss.etcd.set_back("without the purge");
  loss.knows = loss.node("knows");
  CHECK(eventually([&] { return loss.knows->registry().status().lost.find("the purge of m@1") != std::string::npos; }));
  loss.late = loss.node("late");
  CHECK(loss.reconcile().problems.empty());
  auto fresh = loss.node("fresh");
  CHECK(eventually([&] { return fresh->registry().purged().size() == 1; }));
  CHECK(fresh->registry().purged()[0].uid == uid);
  std::string purger;
  for (const Commit& commit : must(fresh->store().commits(0)).commits)
    if (commit.kind == Commit::Kind::purge) purger = commit.by.user;
  CHECK(purger == "eve");
  const auto undeleted = fresh->registry().undelete("m", 1, [](const Digest&) { return true; }, {});
  REQUIRE_FALSE(undeleted.ok());
  CHECK(undeleted.error().message.find("it was purged at 2") != std::string::npos);
  CHECK(undeleted.error().message.find("by eve on node") != std::string::npos);
}

TEST_CASE("reconcile: a lost purge of a version that is live again is reported, once") {
  Loss loss;
  const Uuid uid = must(publish(*loss.late, "m", {1})).version.uid;
  REQUIRE(remove_version(loss.late->registry(), "m", 1).ok());
  loss.lose(
      [&](RegistryNode& node) {
        REQUIRE(node.registry().purge({{"m", 1}, uid}).ok());
        must(publish(node, "other", {2}));
      },
      [](RegistryNode& node) {
        REQUIRE(node.registry().undelete("m", 1, [](const Digest&) { return false; }, {}).ok());
      });
  const ReconcileReport report = loss.reconcile();
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("m@1: it was brought back meanwhile") != std::string::npos);
  CHECK_FALSE(row_of(*loss.knows, "m", 1).removed);
  CHECK(loss.knows->registry().purged().empty());
  CHECK(loss.reconcile().problems.empty());
}

TEST_CASE("reconcile: a purge follows its version to another number, and the collection of the origin comes back") {
  Loss loss;
  must(publish(*loss.knows, "m", {1}));
  const OriginCollection collection{"0123456789abcdef", 3, 5};
  Uuid purged;
  loss.lose(
      [&](RegistryNode& node) {
        must(publish(node, "m", {2}));
        purged = row_of(node, "m", 2).uid;
        REQUIRE(remove_version(node.registry(), "m", 2).ok());
        REQUIRE(node.registry().purge({{"m", 2}, purged}).ok());
        REQUIRE(node.registry().announce(collection).ok());
      },
      [](RegistryNode& node) { must(publish(node, "m", {3})); });
  CHECK(loss.reconcile().renumbered == std::vector<Renumbered>{{"m", 2, 3}});
  auto fresh = loss.node("fresh");
  for (ClusterNode* node : {loss.knows.get(), loss.late.get(), fresh.get()}) {
    REQUIRE(eventually([&] { return node->registry().purged().size() == 1; }));
    const PurgedVersion version = node->registry().purged()[0];
    CHECK(version.name == VersionName{"m", 3});
    CHECK(version.uid == purged);
    CHECK(row_of(*node, "m", 3).uid == purged);
    CHECK(eventually([&] { return node->registry().origin_collection() == collection; }));
  }
}

TEST_CASE("reconcile: tags and removals come back with their authors, and tags with their protection") {
  Loss loss;
  must(publish(*loss.knows, "m", {1}));
  must(publish(*loss.knows, "gone", {2}));
  loss.lose(
      [](RegistryNode& node) {
        REQUIRE(node.registry().set_tag("m", "best", 1, {"ada", {}}).ok());
        REQUIRE(node.registry().set_tag("m", "kept", 1, {"bob", {}}).ok());
        REQUIRE(node.registry().protect_tag("m", "kept", true, {"bob", {}}).ok());
        const VersionName gone{"gone", 1};
        REQUIRE(node.registry().remove_versions({&gone, 1}, Tagged::removed, {"eve", {}}).ok());
      },
      [](RegistryNode& node) { must(publish(node, "m", {3})); });
  CHECK(loss.reconcile().problems.empty());
  REQUIRE(eventually([&] { return tag_of(*loss.late, "m", "kept").has_value(); }));
  REQUIRE(eventually([&] { return tag_of(*loss.late, "m", "best").has_value(); }));
  CHECK(tag_of(*loss.late, "m", "kept")->owner == "bob");
  CHECK(loss.late->registry().set_tag("m", "kept", 2, {"ada", {}, true}).error().code == Errc::permission);
  std::string author, protected_author;
  const ModelId id = must(must(loss.late->store().snapshot())->model("m")).id;
  must(each_row(loss.late->store(), list_tag_moves(id), [&](const TagMove& move) -> Status {
    if (move.name == "best") author = move.by.user;
    if (move.name == "kept") protected_author = move.by.user;
    return {};
  }));
  CHECK(author == "ada");
  CHECK(protected_author == "bob");
  REQUIRE(eventually([&] { return row_of(*loss.late, "gone", 1).removed; }));
  std::string remover;
  for (const Commit& commit : must(loss.late->store().commits(0)).commits)
    if (commit.kind == Commit::Kind::removal) remover = commit.by.user;
  CHECK(remover == "eve");
}

TEST_CASE("reconcile: an etcd that gets full stops it with one line, and a repeated run completes it") {
  constexpr unsigned kLost = 60;
  Loss loss;
  must(publish(*loss.knows, "m", {1}));
  loss.lose(
      [](RegistryNode& node) {
        PublishRequest request;
        request.message = std::string(16'000, 'a');
        for (unsigned content = 2; content < 2 + kLost; ++content) must(publish(node, "m", {content}, request));
      },
      [](RegistryNode& node) { must(publish(node, "other", {2})); });
  loss.etcd.kill();
  loss.etcd.argue({"--quota-backend-bytes=600000"});
  loss.etcd.restart();
  REQUIRE(loss.knows->wait_connected());
  const auto stopped = loss.knows->registry().reconcile({});
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().code == Errc::no_space);
  CHECK(stopped.error().message.find("etcd does not take the versions of this node") != std::string::npos);
  CHECK(stopped.error().message.find('\n') == std::string::npos);
  loss.etcd.kill();
  loss.etcd.argue({});
  loss.etcd.restart();
  loss.etcd.control({"alarm", "disarm"});
  CHECK(loss.reconcile().problems.empty());
  for (ClusterNode* node : {loss.knows.get(), loss.late.get()}) {
    REQUIRE(eventually([&] { return names_of(node->store()).find("other@1") != std::string::npos; }));
    REQUIRE(eventually([&] { return must(must(node->store().snapshot())->model("m")).next_number == 2 + kLost; }));
    for (unsigned number = 1; number <= 1 + kLost; ++number)
      CHECK(row_of(*node, "m", number).manifest == sha256(testing::manifest_of({{number}})));
  }
}

}  // namespace weft

// The guarantees of weft/cluster/registry.h, for every registry.
#include "weft/cluster/registry.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <thread>

#include "../unit/store/index_support.h"
#include "registry_worlds.h"

namespace weft {
namespace {

using conformance::names_of;
using conformance::publish;
using conformance::registry_worlds;
using conformance::RegistryNode;
using conformance::remove_version;
using namespace std::chrono_literals;

// Runs the body in each world.
void in_each(const std::function<void(RegistryNode&)>& body) {
  for (const auto& world : registry_worlds()) {
    CAPTURE(world.name);
    auto node = world.node();
    body(*node);
  }
}

PublishRequest with_tags(std::vector<std::string> tags) {
  PublishRequest request;
  request.tags = std::move(tags);
  return request;
}

PublishRequest with_parent(const std::string& model, std::uint64_t number) {
  PublishRequest request;
  request.parents.push_back({model, number, true, 0, 0, 0});
  return request;
}

Registry::Clock::time_point soon() {
  return Registry::Clock::now() + 20s;
}

TEST_CASE("registry: what is published shows in the store at once, whole") {
  in_each([](RegistryNode& node) {
    PublishRequest request = with_tags({"best", "first", "best"});
    request.message = "hello";
    request.metrics = {{"loss", "0.5"}};
    auto outcome = publish(node, "org/a", {1, 2}, request);
    if (!outcome.ok()) FAIL(outcome.error().message);
    CHECK(outcome->made);
    CHECK(outcome->version.number == 1);
    CHECK(outcome->version.message == "hello");
    CHECK(outcome->new_bytes == 2003);
    CHECK(names_of(node.store()) == "org/a@1 org/a:best=1 org/a:first=1");
    auto snapshot = node.store().snapshot().value();
    CHECK_FALSE(snapshot->is_bare(outcome->version.id).value());
    CHECK(snapshot->find_blob(testing::content_id(1)).ok());
    CHECK(snapshot->version(outcome->version.id)->metrics == request.metrics);
  });
}

TEST_CASE("registry: numbers go up; equal content over the newest makes no version, its tags are set") {
  in_each([](RegistryNode& node) {
    CHECK(publish(node, "a", {1})->version.number == 1);
    CHECK(publish(node, "a", {2})->version.number == 2);
    auto same = publish(node, "a", {2}, with_tags({"best"}));
    REQUIRE(same.ok());
    CHECK_FALSE(same->made);
    CHECK(same->version.number == 2);
    CHECK(publish(node, "a", {1})->version.number == 3);
    CHECK(names_of(node.store()) == "a@1 a@2 a@3 a:best=2");
  });
}

TEST_CASE("registry: tags move and go, and go with their version; numbers are not given twice") {
  in_each([](RegistryNode& node) {
    Registry& registry = node.registry();
    REQUIRE(publish(node, "a", {1}, with_tags({"x"})).ok());
    REQUIRE(publish(node, "a", {2}, with_tags({"y"})).ok());
    CHECK(registry.set_tag("a", "x", 2).ok());
    CHECK(registry.set_tag("a", "z", 1).ok());
    CHECK(names_of(node.store()) == "a@1 a@2 a:x=2 a:y=2 a:z=1");
    CHECK(registry.set_tag("a", "x", 7).error().code == Errc::not_found);
    CHECK(registry.set_tag("b", "x", 1).error().code == Errc::not_found);
    CHECK(registry.set_tag("a", "none", std::nullopt).error().code == Errc::not_found);
    CHECK(registry.set_tag("a", "x", std::nullopt).ok());
    const VersionName tagged{"a", 2};
    CHECK(registry.remove_versions({&tagged, 1}, Tagged::refused).error().code == Errc::exists);
    CHECK(remove_version(registry, "a", 2).ok());
    CHECK(names_of(node.store()) == "a@1 a:z=1");
    CHECK(remove_version(registry, "a", 2).error().code == Errc::not_found);
    CHECK(publish(node, "a", {3})->version.number == 3);
  });
}

TEST_CASE("registry: a removed version comes back with the tags that lead to no other version") {
  in_each([](RegistryNode& node) {
    Registry& registry = node.registry();
    const IsAtOrigin nowhere = [](const Digest&) { return false; };
    REQUIRE(publish(node, "a", {1}, with_tags({"x", "y"})).ok());
    REQUIRE(publish(node, "a", {2}).ok());
    CHECK(registry.undelete("a", 1, nowhere).error().code == Errc::exists);
    CHECK(registry.undelete("a", 9, nowhere).error().code == Errc::not_found);
    REQUIRE(remove_version(registry, "a", 1).ok());
    REQUIRE(registry.set_tag("a", "y", 2).ok());
    const auto done = registry.undelete("a", 1, nowhere, {"alice", ""});
    REQUIRE(done.ok());
    auto snapshot = node.store().snapshot().value();
    const TagMove move = snapshot->tag_moves(snapshot->model("a")->id)->rows.at(0);
    snapshot.reset();
    CHECK(move.name == "x");
    CHECK(move.number == 1);
    CHECK(move.by.user == "alice");
    CHECK(done->tags == std::vector<std::string>{"x"});
    REQUIRE(done->moved.size() == 1);
    CHECK(done->moved[0].number == 2);
    CHECK(names_of(node.store()) == "a@1 a@2 a:x=1 a:y=2");
    REQUIRE(remove_version(registry, "a", 1).ok());  // it has a later time than the undelete
    CHECK(names_of(node.store()) == "a@2 a:y=2");
    CHECK(registry.undelete("a", 1, nowhere)->tags == std::vector<std::string>{"x"});
    REQUIRE(remove_version(registry, "a", 1).ok());
    GcOptions options;
    options.registry_revision = registry.catch_up(Registry::Clock::now() + std::chrono::seconds(10)).value();
    REQUIRE(node.store().gc(options, no_progress()).ok());
    CHECK(registry.undelete("a", 1, nowhere).error().code == Errc::absent);
    CHECK(names_of(node.store()) == "a@2 a:y=2");
    REQUIRE(remove_version(registry, "a", 2).ok());
    REQUIRE(publish(node, "a/b", {3}).ok());
    CHECK(registry.undelete("a", 2, nowhere).error().code == Errc::exists);  // it would hide a/b
  });
}

TEST_CASE("registry: a description replaces the message and sets metrics") {
  in_each([](RegistryNode& node) {
    Registry& registry = node.registry();
    REQUIRE(publish(node, "a", {1}).ok());
    REQUIRE(registry.describe("a", 1, {"first", {{"loss", "1"}, {"epoch", "3"}}}).ok());
    REQUIRE(registry.describe("a", 1, {std::nullopt, {{"loss", "0.5"}}}).ok());
    const auto now = [&] {
      auto snapshot = node.store().snapshot().value();
      return snapshot->version(snapshot->model("a")->id, 1).value();
    };
    CHECK(now().message == "first");
    CHECK(now().metrics == Metrics{{"loss", "0.5"}, {"epoch", "3"}});
    const std::uint64_t time_ns = now().described_ns;
    REQUIRE(registry.describe("a", 1, {"first", {}}).ok());  // so already
    CHECK(now().described_ns == time_ns);
    CHECK(registry.describe("a", 1, {std::string(1, '\a'), {}}).error().code == Errc::invalid);
    CHECK(registry.describe("a", 2, {"x", {}}).error().code == Errc::not_found);
    CHECK(remove_version(registry, "a", 1).ok());
    CHECK(registry.describe("a", 1, {"x", {}}).error().code == Errc::not_found);
  });
}

TEST_CASE("registry: a model is renamed without a cluster, and stays as it is in one") {
  in_each([](RegistryNode& node) {
    REQUIRE(publish(node, "a", {1}).ok());
    const Status renamed = node.registry().rename_model("a", "b");
    CHECK(names_of(node.store()) == (node.store().cluster() ? "a@1" : "b@1"));
    if (node.store().cluster()) CHECK(renamed.error().code == Errc::unsupported);
  });
}

TEST_CASE("registry: a declared parent must live") {
  in_each([](RegistryNode& node) {
    REQUIRE(publish(node, "base", {1}).ok());
    CHECK(publish(node, "a", {2}, with_parent("base", 1)).ok());
    CHECK(publish(node, "a", {3}, with_parent("base", 2)).error().code == Errc::not_found);
    REQUIRE(remove_version(node.registry(), "base", 1).ok());
    CHECK(publish(node, "a", {3}, with_parent("base", 1)).error().code == Errc::not_found);
    CHECK(names_of(node.store()) == "a@1");
  });
}

TEST_CASE("registry: a model's name hides no other's while that one shows") {
  in_each([](RegistryNode& node) {
    REQUIRE(publish(node, "org/a", {1}).ok());
    CHECK(publish(node, "org", {1}).error().code == Errc::exists);
    CHECK(publish(node, "org/a/b", {1}).error().code == Errc::exists);
    REQUIRE(remove_version(node.registry(), "org/a", 1).ok());
    CHECK(publish(node, "org/a/b", {1}).ok());
  });
}

TEST_CASE("registry: many at once lose nothing") {
  in_each([](RegistryNode& node) {
    for (unsigned i = 1; i <= 12; ++i) testing::content_id(i);  // cached before the threads use them
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::set<std::uint64_t> numbers;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (unsigned i = 1; i <= 3; ++i) {
          auto outcome = publish(node, "busy", {3 * t + i});
          std::lock_guard lock(mutex);
          if (outcome.ok() && outcome->made) numbers.insert(outcome->version.number);
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(numbers == std::set<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  });
}

TEST_CASE("registry: gc after catch_up() frees only unneeded bytes") {
  in_each([](RegistryNode& node) {
    REQUIRE(publish(node, "a", {1, 2}).ok());
    REQUIRE(publish(node, "b", {2, 3}).ok());
    REQUIRE(remove_version(node.registry(), "a", 1).ok());
    auto revision = node.registry().catch_up(soon());
    REQUIRE(revision.ok());
    GcOptions options;
    options.registry_revision = *revision;
    auto report = node.store().gc(options, no_progress());
    if (!report.ok()) FAIL(report.error().message);
    CHECK(report->blobs_freed == 1);
    auto snapshot = node.store().snapshot().value();
    CHECK(snapshot->find_blob(testing::content_id(1)).error().code == Errc::not_found);
    CHECK(snapshot->find_blob(testing::content_id(2)).ok());
  });
}

}  // namespace
}  // namespace weft

#include "placement/placement.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace weft::testing {
namespace {

std::vector<std::string> named(std::size_t count) {
  std::vector<std::string> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(fmt::format("node{}", i));
  return nodes;
}

Placement placed(std::uint64_t groups, const std::vector<std::string>& slots, std::uint64_t seed = 7) {
  auto placement = Placement::make(seed, groups, slots);
  REQUIRE_MESSAGE(placement.ok(), placement.error().message);
  return *std::move(placement);
}

std::uint64_t moved(const Placement& before, const Placement& after) {
  std::uint64_t count = 0;
  for (std::uint64_t group = 0; group < before.groups(); ++group)
    count += before.owner(group) != after.owner(group) ? 1 : 0;
  return count;
}

std::map<std::string, std::uint64_t> loads(const Placement& placement) {
  std::map<std::string, std::uint64_t> out;
  for (std::uint64_t group = 0; group < placement.groups(); ++group) ++out[placement.owner(group)];
  return out;
}

std::uint64_t largest(const Placement& placement) {
  std::uint64_t most = 0;
  for (const auto& [node, load] : loads(placement)) most = std::max(most, load);
  return most;
}

void check_bound(const Placement& placement, std::size_t nodes) {
  const double mean = static_cast<double>(placement.groups()) / static_cast<double>(nodes);
  CHECK(static_cast<double>(largest(placement)) <= 1.02 * mean + 1);
  CHECK_FALSE(loads(placement).contains(""));
}

}  // namespace

TEST_CASE("each group has one owner, and no node has more than its share") {
  for (const std::size_t nodes : {1U, 2U, 3U, 4U, 16U, 64U, 100U})
    for (const std::uint64_t groups : {0U, 1U, 3U, 105U, 1000U, 4096U}) {
      CAPTURE(nodes);
      CAPTURE(groups);
      const Placement placement = placed(groups, named(nodes));
      CHECK(placement.groups() == groups);
      CHECK(largest(placement) == (groups + nodes - 1) / nodes);
      std::uint64_t owned = 0;
      for (const std::string& node : named(nodes)) {
        const auto mine = placement.groups_of(node);
        CHECK(std::ranges::is_sorted(mine));
        CHECK(std::ranges::all_of(mine, [&](std::uint64_t group) { return placement.owner(group) == node; }));
        owned += mine.size();
      }
      CHECK(owned == groups);
    }
  CHECK(placed(10, named(3)).groups_of("stranger").empty());
}

TEST_CASE("35,000 groups over 1,024 nodes are even") {
  CHECK(largest(placed(35'000, named(1024))) == 35);
}

TEST_CASE("a node that joins takes its share, and nothing else moves") {
  for (const std::size_t nodes : {1U, 4U, 16U, 63U})
    for (const std::uint64_t groups : {1U, 105U, 5000U}) {
      const Placement before = placed(groups, named(nodes)), after = placed(groups, named(nodes + 1));
      CHECK(moved(before, after) == groups / (nodes + 1));
      CHECK(after.groups_of(fmt::format("node{}", nodes)).size() == groups / (nodes + 1));
    }
}

TEST_CASE("only the groups of a node that leaves move, and another node can take its slot") {
  for (const std::uint64_t groups : {105U, 5000U}) {
    const auto five = named(5);
    const Placement before = placed(groups, five);
    for (const std::string& gone : five) {
      auto rest = five;
      std::erase(rest, gone);
      const auto slots = next_slots(five, rest);
      const Placement after = placed(groups, slots);
      CHECK(moved(before, after) == before.groups_of(gone).size());
      check_bound(after, 4);
      rest.push_back("new");
      const Placement again = placed(groups, next_slots(slots, rest));
      CHECK(again.groups_of("new") == before.groups_of(gone));
      CHECK(moved(after, again) == before.groups_of(gone).size());
    }
  }
}

TEST_CASE("slots keep their nodes") {
  using Slots = std::vector<std::string>;
  CHECK(next_slots({}, Slots{"a", "b"}) == Slots{"a", "b"});
  CHECK(next_slots({"a", "b", "c"}, Slots{"c", "a"}) == Slots{"a", "", "c"});
  CHECK(next_slots({"a", "", "c"}, Slots{"d", "c", "a", "e"}) == Slots{"a", "d", "c", "e"});
  CHECK(next_slots({"", "", "c"}, Slots{"x", "y"}) == Slots{"x", "y", ""});
  CHECK(next_slots({"a", "b"}, Slots{"b", "a"}) == Slots{"a", "b"});
}

TEST_CASE("through random joins and leaves the bound holds, and little moves") {
  std::mt19937 random(1);
  constexpr std::uint64_t kGroups = 2000;
  std::vector<std::string> nodes = named(8), slots = next_slots({}, nodes);
  for (int step = 8; step < 100; ++step) {
    const Placement before = placed(kGroups, slots);
    const bool join = nodes.size() < 3 || (nodes.size() < 16 && random() % 2 == 0);
    if (join)
      nodes.push_back(fmt::format("node{}", step));
    else
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(random() % nodes.size()));
    slots = next_slots(slots, nodes);
    const Placement after = placed(kGroups, slots);
    check_bound(after, nodes.size());
    const std::uint64_t share = kGroups / std::min(nodes.size(), loads(before).size());
    CHECK(moved(before, after) <= 2 * share);
  }
}

TEST_CASE("all nodes stand in for the owner, each once") {
  const auto nodes = named(6);
  const Placement placement = placed(300, nodes);
  std::map<std::string_view, int> second;
  for (std::uint64_t group = 0; group < placement.groups(); ++group) {
    const auto order = placement.order(group);
    CHECK(order.front() == placement.owner(group));
    CHECK(std::set(order.begin(), order.end()).size() == nodes.size());
    ++second[order[1]];
  }
  for (const std::string& node : nodes) CHECK(second[node] > 20);  // a dead node's groups go to all others
  CHECK(placed(1, {"", "only"}).order(0) == std::vector<std::string_view>{"only"});
}

TEST_CASE("another seed is another placement") {
  const auto nodes = named(4);
  CHECK(moved(placed(400, nodes), placed(400, nodes)) == 0);
  CHECK(moved(placed(400, nodes, 1), placed(400, nodes, 2)) > 200);
}

TEST_CASE("each node has 64 groups or more, of 4 to 64 MiB") {
  constexpr std::uint64_t kImageNet = 150'000'000'000;
  CHECK(group_bytes(kImageNet, 4) == 64U << 20U);
  CHECK(group_bytes(kImageNet, 32) == 64U << 20U);
  CHECK(group_bytes(kImageNet, 1024) == 4U << 20U);
  CHECK(group_bytes(440'000'000, 4) == 4U << 20U);
  CHECK(group_bytes(0, 0) == 4U << 20U);
  for (const std::size_t nodes : {33U, 100U, 500U}) CHECK(kImageNet / group_bytes(kImageNet, nodes) / nodes >= 64);
}

TEST_CASE("hostile placements are refused") {
  CHECK(Placement::make(1, Placement::kGroupsMax + 1, {"a"}).error().code == Errc::invalid);
  CHECK(Placement::make(1, 1, {}).error().code == Errc::invalid);
  CHECK(Placement::make(1, 1, {"", ""}).error().code == Errc::invalid);
  CHECK(Placement::make(1, 1, {"a", "b", "a"}).error().message == "placement: node a has two slots");
  CHECK(Placement::make(1, 1, named(Placement::kSlotsMax + 1)).error().code == Errc::invalid);
}

}  // namespace weft::testing

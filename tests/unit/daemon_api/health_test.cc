#include "daemon_api/health.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/json_value.h"

using namespace weft;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kNow = 1'000'000 * kSecond;

NodeFacts node(const std::string& name) {
  NodeFacts out;
  out.node = "id of " + name;
  out.name = name;
  out.present = out.asked = true;
  out.free_bytes = 50;
  out.disk_bytes = 100;
  out.reserve_bytes = 4;
  out.last_ns = kNow;
  return out;
}

// A cluster of two nodes without a finding.
ClusterHealth good() {
  ClusterHealth facts;
  facts.gathered_ns = kNow;
  facts.clustered = facts.copies_known = true;
  facts.origin = {"/origin", "", 0.001};
  facts.etcd = {"http://etcd:2379", "", 0.001};
  facts.nodes = {node("n1"), node("n2")};
  facts.nodes[0].self = true;
  return facts;
}

// Returns "LEVEL WHAT" of each finding, of these facts after a change.
std::vector<std::string> found(const std::function<void(ClusterHealth&)>& change) {
  ClusterHealth facts = good();
  change(facts);
  std::vector<std::string> out;
  for (const HealthFinding& one : judge(facts, kNow)) out.push_back(one.level + " " + one.what);
  return out;
}

using Found = std::vector<std::string>;

}  // namespace

TEST_CASE("a cluster without findings is well") {
  CHECK(judge(good(), kNow).empty());
  CHECK(verdict_of({}) == HealthLevel::well);
  CHECK(verdict_line({}) == "well");
}

TEST_CASE("each fact that is wrong gives its finding") {
  CHECK(found([](auto& f) { f.lost = 2, f.last_lost = "m@1", f.last_lost_ns = kNow - kSecond; }) ==
        Found{"trouble versions-lost"});
  CHECK(found([](auto& f) { f.sole = {{"id-n3", "n3", true, 1, 5, {"m@1"}}}; }) == Found{"trouble versions-absent"});
  CHECK(found([](auto& f) {
          f.sole = {{"id-n1", "n1", false, 1, 5, {"m@1"}}};
        }) == Found{"warning versions-on-one-node"});
  CHECK(found([](auto& f) { f.copies_problem = "n2 does not answer"; }) == Found{"warning copies-unknown"});
  CHECK(found([](auto& f) { f.origin.problem = "no such directory"; }) == Found{"trouble origin-unreachable"});
  CHECK(found([](auto& f) { f.origin.seconds = 2; }) == Found{"warning origin-slow"});
  CHECK(found([](auto& f) { f.etcd.problem = "connection refused"; }) == Found{"trouble etcd-unreachable"});
  CHECK(found([](auto& f) { f.etcd.seconds = 2; }) == Found{"warning etcd-slow"});
  CHECK(found([](auto& f) { f.history_lost = "node a has m@2"; }) == Found{"trouble history-lost"});
  CHECK(found([](auto& f) { f.keys = 2; }) == Found{"warning keys-differ"});
  CHECK(found([](auto& f) { f.nodes[1].other_key = true; }) == Found{"trouble keys-differ"});
  CHECK(found([](auto& f) { f.nodes[1].present = false; }) == Found{"warning node-absent"});
  CHECK(found([](auto& f) { f.nodes[1].problem = "timed out"; }) == Found{"trouble node-silent"});
  CHECK(found([](auto& f) { f.daemon_problem = "weftd does not run"; }) == Found{"trouble node-silent"});
  CHECK(found([](auto& f) { f.nodes[1].free_bytes = 4; }) == Found{"warning disk-space"});
  CHECK(found([](auto& f) { f.nodes[1].free_bytes = 0; }) == Found{"trouble disk-space"});
  CHECK(found([](auto& f) { f.nodes[0].reserve_bytes = 0; }) == Found{"warning no-reserve"});
}

TEST_CASE("an old loss, a service that is not configured, and an absent node's disk are no findings") {
  CHECK(found([](auto& f) { f.lost = 1, f.last_lost = "m@1", f.last_lost_ns = kNow - 8 * 86'400 * kSecond; }).empty());
  CHECK(found([](auto& f) { f.origin = {}, f.etcd = {}; }).empty());
  CHECK(found([](auto& f) { f.nodes[1].disk_bytes = f.nodes[1].free_bytes = 0; }).empty());
}

TEST_CASE("a clock offset counts as far as it exceeds its error") {
  const auto offset = [](double seconds, double error) {
    return found([&](auto& f) {
      f.nodes[1].clock_offset_seconds = seconds;
      f.nodes[1].clock_error_seconds = error;
    });
  };
  CHECK(offset(0.9, 0).empty());
  CHECK(offset(1.5, 0.6).empty());
  CHECK(offset(1.5, 0.1) == Found{"warning clock-offset"});
  CHECK(offset(3600, 0.1) == Found{"trouble clock-offset"});
}

TEST_CASE("troubles come first, and the verdict is the worst level") {
  ClusterHealth facts = good();
  facts.origin.seconds = 2;
  facts.sole = {{"id-n3", "n3", true, 12, 5, {"m@1", "m@2"}}};
  const HealthReport report = report_of(facts, kNow);
  REQUIRE(report.findings.size() == 2);
  CHECK(report.findings[0].what == "versions-absent");
  CHECK(report.findings[0].text.find("n3") != std::string::npos);
  CHECK(report.findings[0].text.find("m@1, m@2, …") != std::string::npos);
  CHECK(report.verdict == "trouble");
  CHECK(verdict_line(report.findings) == "trouble: 1 finding in trouble, 1 warning");
  CHECK(verdict_of({report.findings[1]}) == HealthLevel::warning);
  for (const HealthFinding& one : report.findings) {
    const auto words = finding_words();
    CHECK(std::ranges::find(words, one.what) != words.end());
  }
}

TEST_CASE("a report survives encoding") {
  ClusterHealth facts = good();
  facts.nodes[1].clock_offset_seconds = 0.000'03;
  facts.nodes[1].clock_ahead = true;
  facts.sole = {{"id-n1", "n1", false, 1, 5, {"m@1"}}};
  const auto json = JsonValue::parse(encode_fields(report_of(facts, kNow)));
  REQUIRE(json.ok());
  const auto back = decode_fields<HealthReport>(*json);
  REQUIRE(back.ok());
  CHECK(back->verdict == "warning");
  CHECK(back->facts.nodes.size() == 2);
  CHECK(back->facts.nodes[1].clock_offset_seconds == doctest::Approx(0.000'03));
  CHECK(back->facts.nodes[1].clock_ahead);
  CHECK(back->facts.sole.at(0).named == std::vector<std::string>{"m@1"});
}

TEST_CASE("clocks of other members that answered, the farthest first") {
  ClusterHealth facts = good();
  facts.nodes.push_back(node("n3"));
  facts.nodes.push_back(node("silent"));
  facts.nodes.push_back(node("absent"));
  facts.nodes.push_back(node("not asked"));
  facts.nodes[1].clock_offset_seconds = 0.25;
  facts.nodes[2].clock_offset_seconds = 1.5;
  facts.nodes[2].clock_error_seconds = 0.0002;
  facts.nodes[2].clock_ahead = true;
  facts.nodes[3].problem = "it does not answer";
  facts.nodes[4].present = false;
  facts.nodes[5].asked = false;
  const auto compared = compared_clocks(facts);
  REQUIRE(compared.size() == 2);
  CHECK(compared[0]->name == "n3");
  CHECK(clock_text(*compared[0]) == "+1.5000 s, ± 0.0002 s");
  CHECK(clock_text(*compared[1]) == "-0.2500 s, ± 0.0000 s");
  CHECK_FALSE(clock_text(facts.nodes[0]).has_value());
}

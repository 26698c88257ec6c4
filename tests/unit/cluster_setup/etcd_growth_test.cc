#include "cluster_setup/etcd_growth.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "fakes/etcd_process.h"

namespace weft::setup {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a member without a vote is left over once a join would have given up") {
  auto now = LearnerAge::Clock::time_point() + 1h;
  LearnerAge age([&] { return now; });
  CHECK(!age.is_left_over(1));
  now += 80s;
  CHECK(!age.is_left_over(1));
  now += 20s;
  CHECK(age.is_left_over(1));
  CHECK(!age.is_left_over(2));  // another one begins its own time
}

TEST_CASE("a machine that died while it joined takes the place of no other") {
  testing::EtcdProcess etcd;
  EtcdOptions options;
  options.endpoints = {etcd.endpoint()};
  etcd::Client client(options);
  const std::string dead = "http://127.0.0.1:1", next = "http://127.0.0.1:2";
  auto now = LearnerAge::Clock::time_point() + 1h;
  LearnerAge age([&] { return now; });
  REQUIRE(!add_member(client, {"dead", dead}, 3, age).empty());
  now += 100s;
  const std::string cluster = add_member(client, {"next", next}, 3, age);
  CHECK(cluster.find("next=" + next) != std::string::npos);
  CHECK(cluster.find(dead) == std::string::npos);
  const auto members = client.members();
  REQUIRE(members.ok());
  CHECK(members->size() == 2);
  CHECK(std::ranges::count(*members, true, &etcd::EtcdMember::is_learner) == 1);
}

}  // namespace
}  // namespace weft::setup

#include "cluster_setup/node_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "testing.h"

using namespace weft;
using namespace weft::setup;

namespace {

NodeParts first_node() {
  NodeParts parts;
  parts.name = "n1";
  parts.cluster = "main";
  parts.cluster_key = "the key of the cluster";
  parts.listen = {"10.0.0.1", 4711};
  parts.etcd = {{"https://10.0.0.1:4713"}, "", "", "", "CA", "CERT", "ETCDKEY"};
  parts.member.emplace(EtcdMember{"/usr/bin/etcd", "abcd", "n1=https://10.0.0.1:4714", true});
  parts.first.emplace(FirstNode{3, {"CA", "CAKEY"}, {}});
  parts.weftd = "/usr/sbin/weftd";
  return parts;
}

const PlannedFile* file_of(const Plan& plan, const std::string& path) {
  const auto found = std::ranges::find(plan.files, path, &PlannedFile::path);
  return found == plan.files.end() ? nullptr : &*found;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the first node of the system: files, units and commands") {
  const Plan plan = node_plan(system_places(), first_node());
  CHECK(plan.store == "/var/lib/weft");
  CHECK(plan.join == "10.0.0.1:4712");
  CHECK(plan.data == std::vector<std::string>{"/var/lib/weft/etcd"});
  const auto* const config = file_of(plan, "/etc/weft/weft.conf");
  REQUIRE(config != nullptr);
  CHECK(has(config->content, "listen = \"10.0.0.1:4711\"\n"));
  CHECK(has(config->content, "endpoints = [\"https://10.0.0.1:4713\"]\n"));
  CHECK(has(config->content, "[join]\nlisten = \"10.0.0.1:4712\"\nauthority = \"/etc/weft/authority\"\nmembers = 3\n"));
  const auto* const unit = file_of(plan, "/etc/systemd/system/weft-etcd.service");
  REQUIRE(unit != nullptr);
  CHECK(has(unit->content, "ExecStart=/usr/bin/etcd --config-file /etc/weft/etcd.yaml\n"));
  CHECK(plan.start == std::vector<Command>{{"systemctl", "daemon-reload"},
                                           {"systemctl", "enable", "--now", "weft-etcd.service", "weftd.service"}});
  CHECK(stop_commands(system_places(), true) ==
        std::vector<Command>{{"systemctl", "disable", "--now", "weftd.service", "weft-etcd.service"}});
}

TEST_CASE("etcd asks clients and peers for certificates") {
  const Plan plan = node_plan(system_places(), first_node());
  const auto* const config = file_of(plan, "/etc/weft/etcd.yaml");
  REQUIRE(config != nullptr);
  for (const char* const end : {"client", "peer"})
    CHECK(has(config->content, std::string(end) +
                                   "-transport-security: {cert-file: \"/etc/weft/etcd-cert.pem\", key-file: "
                                   "\"/etc/weft/etcd-key.pem\", client-cert-auth: true, trusted-ca-file: "
                                   "\"/etc/weft/etcd-ca.pem\"}\n"));
  CHECK_FALSE(has(config->content, "http://"));
}

TEST_CASE("each secret has a file that only its owner reads, and --dry-run shows none") {
  const Plan plan = node_plan(places_below("/d"), first_node());
  for (const char* const name : {"cluster.key", "etcd-key.pem", "authority/ca.key", "authority/token.key"}) {
    const auto* const file = file_of(plan, std::string("/d/etc/") + name);
    REQUIRE(file != nullptr);
    CHECK(file->mode == 0600);
    CHECK(file->secret);
  }
  const std::string text = plan_text(plan);
  for (const char* const secret : {"the key of the cluster", "ETCDKEY", "CAKEY"}) CHECK_FALSE(has(text, secret));
  CHECK(has(text, "file /d/etc/cluster.key (mode 0600)\n    (22 bytes, secret)\n"));
  CHECK(has(text, "run /bin/sh /d/start\n"));
}

TEST_CASE("below a directory, everything is there") {
  const Plan plan = node_plan(places_below("/d/e"), first_node());
  for (const PlannedFile& file : plan.files) CHECK(file.path.starts_with("/d/e/"));
  for (const PlannedDirectory& directory : plan.directories) CHECK(directory.path.starts_with("/d/e"));
  for (const std::string& path : plan.data) CHECK(path.starts_with("/d/e/"));
  CHECK(plan.store == "/d/e/store");
}

TEST_CASE("a node that joins runs no etcd and admits nobody") {
  NodeParts parts = first_node();
  parts.member.reset();
  parts.first.reset();
  const Plan plan = node_plan(system_places(), parts);
  CHECK(plan.join.empty());
  CHECK(plan.data.empty());
  CHECK(file_of(plan, "/etc/weft/etcd.yaml") == nullptr);
  CHECK(file_of(plan, "/etc/weft/authority/ca.key") == nullptr);
  CHECK_FALSE(has(file_of(plan, "/etc/weft/weft.conf")->content, "[join]"));
  CHECK(plan.start == std::vector<Command>{{"systemctl", "enable", "--now", "weftd.service"}});
}

TEST_CASE("a node whose etcd joins the members of others: its URL is recorded, for leave") {
  NodeParts parts = first_node();
  parts.first.reset();
  parts.member->is_new = false;
  const Plan plan = node_plan(places_below("/d"), parts);
  CHECK(plan.peer_url == "https://10.0.0.1:4714");
  CHECK(plan.endpoints == parts.etcd.endpoints);
  CHECK(has(file_of(plan, "/d/etc/etcd.yaml")->content, "initial-cluster-state: \"existing\"\n"));
  CHECK(node_plan(places_below("/d"), first_node()).peer_url.empty());
}

TEST_CASE("an etcd of the site: its files, and a setting for each that there is") {
  NodeParts parts = first_node();
  parts.member.reset();
  parts.etcd = {{"https://e1:2379", "https://e2:2379"}, "/other", "weft", "pass word", "CA", "", ""};
  const Plan plan = node_plan(system_places(), parts);
  const std::string config = file_of(plan, "/etc/weft/weft.conf")->content;
  CHECK(has(config,
            "endpoints = [\"https://e1:2379\", \"https://e2:2379\"]\nprefix = \"/other\"\nuser = \"weft\"\n"
            "password_file = \"/etc/weft/etcd-password\"\nca = \"/etc/weft/etcd-ca.pem\"\n"));
  CHECK_FALSE(has(config, "cert ="));
  CHECK_FALSE(has(config, "pass word"));
  CHECK(file_of(plan, "/etc/weft/etcd-password")->content == "pass word\n");
  CHECK(file_of(plan, "/etc/weft/etcd-password")->mode == 0600);
}

TEST_CASE("words of a shell") {
  CHECK(shell_word("/a/b-c_1.d") == "/a/b-c_1.d");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("$(x)") == "'$(x)'");
  CHECK(shell_word("").size() == 2);
}

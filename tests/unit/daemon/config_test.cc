#include "daemon/config.h"

#include <doctest/doctest.h>

#include <set>

#include "testing.h"

namespace weft {
namespace {

Result<Config> config_of(std::string_view text) {
  const testing::TempDir dir;
  testing::write_file(dir / "weft.conf", text);
  Mistakes mistakes;
  const SettingValues values = read_config_file(dir / "weft.conf", mistakes);
  WEFT_CHECK(first_of(mistakes));
  return make_config(values);
}

TEST_CASE("missing settings have defaults") {
  const auto config = config_of("store = '/s'");
  REQUIRE(config.ok());
  CHECK(config->store == "/s");
  CHECK(!config->name.empty());
  CHECK(config->provider == "auto");
  CHECK(config->cache_max == 20ULL << 30U);
  CHECK(config->cold == "auto");
  CHECK(config->sparse == "auto");
  CHECK(!config->expect_others);
  CHECK(config->location.empty());
  CHECK(config->follow.empty());
  CHECK(!config->metrics_listen.has_value());
  CHECK(config->drain == std::chrono::seconds(30));
  CHECK(config->gc_delay == std::chrono::hours(1));
  CHECK(config->drafts_keep == std::chrono::hours(7 * 24));
  CHECK(!config->clustered());
}

TEST_CASE("tables, lists and numbers") {
  const auto config = config_of(R"(
store = "/s"
listen = "10.0.0.7"
key_file = "/k"
cache_max = "1T"
metrics_listen = "[::1]:9464"
follow = ["org/m", "teams"]
gc_delay = "10m"
drafts_keep = "90"
[etcd]
endpoints = ["http://a:2379", "http://b:2379"]
prefix = "/x"
[control]
publish = [12, "@34"]
gc = "root"
)");
  REQUIRE(config.ok());
  CHECK(config->cache_max == 1ULL << 40U);
  CHECK(config->metrics_listen->host == "::1");
  CHECK(config->metrics_listen->port == 9464);
  CHECK(config->follow == std::vector<std::string>{"org/m", "teams"});
  CHECK(config->gc_delay == std::chrono::minutes(10));
  CHECK(config->drafts_keep == std::chrono::seconds(90));
  CHECK(config->etcd.endpoints == std::vector<std::string>{"http://a:2379", "http://b:2379"});
  CHECK(config->etcd.prefix == "/x");
  CHECK(config->publish.others.users.contains(12));
  CHECK(config->publish.others.groups.contains(34));
  CHECK(config->gc.users.contains(0));
}

TEST_CASE("rates are bytes a second, and too low ones are refused") {
  CHECK(config_of("store = '/s'")->rates == PaceRates{});
  const auto config = config_of("store = '/s'\n[rate]\nstaging = '1M'\ntotal = 1000000\norigin = '0'");
  REQUIRE(config.ok());
  CHECK(config->rates == PaceRates{1U << 20U, 1'000'000, 0});
  for (const std::string wrong : {"'999999'", "1", "'-1'", "'fast'", "'100 MB/s'", "''"}) {
    CAPTURE(wrong);
    for (const std::string rate : {"staging", "total", "origin"}) {
      const auto refused = config_of("store = '/s'\n[rate]\n" + rate + " = " + wrong);
      REQUIRE(!refused.ok());
      CHECK(refused.error().message.find(":3: rate." + rate + ": expected 0 (no bound) or at least 1000000 bytes") !=
            std::string::npos);
    }
  }
  CHECK(find_setting("rate.total")->reloadable);
}

TEST_CASE("clients of a hub are served on the loopback, and elsewhere with a token") {
  const auto with = [](const std::string& table) { return config_of("store = '/s'\n[hub]\n" + table); };
  CHECK(!config_of("store = '/s'")->hub_listen.has_value());
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{{"127.0.0.1:80", "127.0.0.1"},
                                                                          {"127.1.2.3:80", "127.1.2.3"},
                                                                          {"[::1]:80", "::1"},
                                                                          {"localhost:80", "127.0.0.1"}}) {
    CAPTURE(row.first);
    const auto config = with("listen = '" + row.first + "'");
    REQUIRE(config.ok());
    CHECK(config->hub_listen->host == row.second);
    CHECK(config->hub_listen->port == 80);
  }
  CHECK(with("listen = '0.0.0.0:80'\ntoken_file = '/t'")->hub_listen->host == "0.0.0.0");
  for (const std::string text : {"0.0.0.0:80", "[::]:80", "10.0.0.7:80", "127.0.0.1", "127.0.0.1:0", "127.evil.com:80",
                                 "[::ffff:127.0.0.1]:80", "127.0.0.1:99999"}) {
    CAPTURE(text);
    const auto config = with("listen = '" + text + "'");
    REQUIRE(!config.ok());
    CHECK(config.error().message.find(":3: hub.listen: expected ") != std::string::npos);
  }
  CHECK(with("token_file = '/t'").error().message.find("hub.token_file: expected hub.listen with it") !=
        std::string::npos);
}

TEST_CASE("a node of a cluster admits machines at an address, with a directory of keys") {
  const std::string node = "store = '/s'\nkey_file = '/k'\nlisten = '10.0.0.1:1'\netcd.endpoints = ['http://a:1']\n";
  const auto config = config_of(node + "[join]\nlisten = '10.0.0.1:4712'\nauthority = '/a'\nmembers = 3");
  REQUIRE(config.ok());
  CHECK(config->join_listen->port == 4712);
  CHECK(config->join_authority == "/a");
  CHECK(config->join_members == 3);
  CHECK(!config_of(node)->join_listen.has_value());
  for (const std::string table :
       {"listen = '10.0.0.1:4712'", "authority = '/a'", "listen = '10.0.0.1'\nauthority = '/a'",
        "listen = '10.0.0.1:4712'\nauthority = '/a'\nmembers = 8"}) {
    CAPTURE(table);
    CHECK_FALSE(config_of(node + "[join]\n" + table).ok());
  }
  CHECK_FALSE(config_of("store = '/s'\n[join]\nlisten = '10.0.0.1:4712'\nauthority = '/a'").ok());
}

TEST_CASE("an upstream is a URL for the clients of a hub") {
  const std::string listen = "store = '/s'\n[hub]\nlisten = '127.0.0.1:80'\n";
  const auto config = config_of(listen + "upstream = 'https://hub.example/'\nupstream_token_file = '/t'");
  REQUIRE(config.ok());
  CHECK(config->hub_upstream == "https://hub.example/");
  CHECK(config->hub_upstream_token_file == "/t");
  CHECK(config_of(listen)->hub_upstream.empty());
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{
           {listen + "upstream = 'hub.example'", ":4: hub.upstream: expected a URL"},
           {listen + "upstream = 'file:///etc'", ":4: hub.upstream: expected a URL"},
           {listen + "upstream_token_file = '/t'", ":4: hub.upstream_token_file: expected hub.upstream with it"},
           {"store = '/s'\n[hub]\nupstream = 'http://h'", ":3: hub.upstream: expected hub.listen with it"}}) {
    CAPTURE(row.first);
    const auto refused = config_of(row.first);
    REQUIRE(!refused.ok());
    CHECK(refused.error().message.find(row.second) != std::string::npos);
  }
}

TEST_CASE("mistakes are named with their line") {
  for (const auto& mistake : std::vector<std::pair<std::string, std::string>>{
           {"store = '/s'\nstoer = '/s'", ":2: unknown key stoer"},
           {"[etcd]\nendpoint = 'x'", ":2: unknown key etcd.endpoint"},
           {"store = '/s'\ncold = 'never'", ":2: cold: expected one of auto, stream, fetch, got \"never\""},
           {"store = '/s'\nsparse = 'always'", ":2: sparse: expected one of auto, never, got \"always\""},
           {"store = '/s'\nmetrics_listen = '127.0.0.1'", ":2: metrics_listen: expected HOST:PORT or [HOST]:PORT"},
           {"store = '/s'\nmetrics_listen = ':70000'", ":2: metrics_listen: expected HOST:PORT"},
           {"store = '/s'\nmetrics_listen = 9464", ":2: metrics_listen: expected HOST:PORT"},
           {"store = ['/s']", ":1: store: expected a text"},
           {"store = true", ":1: store: expected a text"},
           {"store = '/s'\ntrust_store = 'maybe'", ":2: trust_store: expected true or false"},
           {"store = '/s'\nexpect_others = 1", ":2: expect_others: expected true or false"},
           {"store = '/s'\ndrain_seconds = 99999", ":2: drain_seconds: expected a number up to 3600"},
           {"store = '/s'\ngc_delay = '1w'", ":2: gc_delay: expected a time, such as 90s, 10m, 1h or 7d"},
           {"store = '/s'\ngc_delay = 'h'", ":2: gc_delay: expected a time"},
           {"store = '/s'\nlog_level = 'info,disk=debug'", ":2: log_level: expected debug, info, warning or error"},
           {"store = '/s'\norigin = '/o'", "origin: expected etcd.endpoints with it"},
           {"[control.publish]\nx = 1", ": control.publish: expected texts"},
           {"store = '/s'\ngrant = 'team/'", ":2: grant: expected tables [[grant]]"},
           {"store = '/s'\n[[grant]]\npublish = ['root']", ":2: grant: expected prefix = \"NAMES/\""},
           {"store = '/s'\n[[grant]]\nprefix = 'a/'\ngc = ['root']", ":4: unknown key grant.gc"},
           {"store = '/s'\n[[grant]]\nprefix = 'a/'", ":2: grant: expected a prefix, then publish="},
           {"store = '/s'\n[[grant]]\nprefix = '7'\npublish = 'root'", ":2: grant: expected a model's name, or the"},
           {"store = '/s'\n[[grant]]\nprefix = 'a/'\npublish = ['a b']",
            ":4: grant.publish: expected users and @GROUPS"},
           {"store = '/s'\n[[grant]]\nprefix = 'a/'\nremove = ['no-such-user']",
            ":2: grant: the grant of remove for \"a/\": no user"},
           {"store = '/s'\n[[grant]]\nprefix = 'a/'\npublish = 'root'\n[[grant]]\nprefix = 'a/'\npublish = 'root'",
            ":2: grant: expected each prefix once, got \"a/\" again"},
           {"store = \"/s", ":1: "},
           {"", "store: expected the directory"}}) {
    const auto config = config_of(mistake.first);
    CAPTURE(mistake.first);
    REQUIRE(!config.ok());
    CAPTURE(config.error().message);
    CHECK(config.error().code == Errc::invalid);
    CHECK(config.error().message.find(mistake.second) != std::string::npos);
  }
}

TEST_CASE("rights may differ by the names of models") {
  const auto config = config_of(R"(
store = "/s"
[[grant]]
prefix = "team-a/"
publish = ["@0", 1001]
remove = []
[[grant]]
prefix = "base"
remove = "1002"
[control]
publish = [1003]
)");
  REQUIRE(config.ok());
  CHECK(config->publish.of("team-a/x").users.contains(1001));
  CHECK(config->publish.of("team-a/x").groups.contains(0));
  CHECK(config->publish.of("team-a/x").setting == "the grant of publish for \"team-a/\"");
  CHECK(config->publish.of("base").users.contains(1003));  // the rule for base says nothing about this right
  CHECK(config->publish.of("base").setting == "control.publish");
  CHECK(config->remove.of("base/x").users.contains(1002));
  CHECK(config->remove.of("team-a/x").users.empty());
  const auto option = make_config({{"store", {{"/s"}, ""}}, {"grant", {{"team/ publish=1001"}, "--grant"}}});
  REQUIRE(option.ok());
  CHECK(option->publish.of("team/x").users.contains(1001));
}

TEST_CASE("a location is a short word of ASCII") {
  const auto with = [](const std::string& location) {
    return config_of("store = '/s'\nlocation = '" + location + "'");
  };
  const std::string longest(64, 'r');
  for (const std::string& location : {std::string("hall2/rack-17"), longest, std::string()}) {
    const auto config = with(location);
    REQUIRE(config.ok());
    CHECK(config->location == location);
  }
  for (const std::string& location : {longest + "r", std::string("rack 17"), std::string("Gestell-ö")}) {
    CAPTURE(location);
    const auto config = with(location);
    REQUIRE(!config.ok());
    CHECK(config.error().message.find(":2: location: expected at most 64 printable ASCII characters without spaces, "
                                      "got \"") != std::string::npos);
  }
}

TEST_CASE("all mistakes are found at once") {
  const testing::TempDir dir;
  testing::write_file(dir / "weft.conf", R"(
stoer = "/s"
cold = "never"
cache_max = "much"
[etcd]
endpoints = ["http://a:2379"]
password_file = "/none"
[control]
gc = ["no-such-user"]
)");
  Mistakes mistakes;
  const Config config = make_config(read_config_file(dir / "weft.conf", mistakes), mistakes);
  std::string all;
  for (const Error& mistake : mistakes) all += mistake.message + "\n";
  CAPTURE(all);
  for (const char* part :
       {":2: unknown key stoer", "store: expected the directory", ":3: cold: expected one of",
        ":4: cache_max: expected bytes", ":7: etcd.password_file: /none", "listen: expected the address of this node",
        "key_file: expected the file of the", ":9: control.gc: no user"})
    CHECK(all.find(part) != std::string::npos);
  CHECK(mistakes.size() == 8);
  CHECK(config.cold == "auto");  // a setting with a mistake has its default
}

TEST_CASE("a node of a cluster needs the address at which the others reach it, unless it has no peers") {
  const std::string cluster = "store = '/s'\nkey_file = '/k'\netcd.endpoints = ['http://a:2379']\n";
  const auto silent = config_of(cluster);
  REQUIRE(!silent.ok());
  CHECK(silent.error().message ==
        "listen: expected the address of this node for the other nodes, since etcd.endpoints "
        "is set, got nothing");
  CHECK(config_of(cluster + "listen = '10.0.0.7'").ok());
  CHECK(config_of(cluster + "provider = 'none'").ok());
}

TEST_CASE("need_restart() lists changed settings that are not reloadable") {
  const SettingValues before = {{"store", {{"/s"}, ""}}, {"cold", {{"auto"}, ""}}};
  const SettingValues after = {{"store", {{"/t"}, ""}}, {"cold", {{"fetch"}, ""}}, {"origin", {{"/o"}, ""}}};
  CHECK(need_restart(before, after) == std::vector<std::string>{"store", "origin"});
  CHECK(need_restart(before, before).empty());
}

TEST_CASE("a reload keeps the settings that are not reloadable") {
  const SettingValues before = {{"store", {{"/s"}, ""}},     {"origin", {{"/o"}, ""}},
                                {"cold", {{"auto"}, ""}},    {"listen", {{"10.0.0.7"}, ""}},
                                {"key_file", {{"/k"}, ""}},  {"etcd.endpoints", {{"http://a:2379"}, ""}},
                                {"control.gc", {{"12"}, ""}}};
  const SettingValues after = {{"store", {{"/s"}, ""}},
                               {"origin", {{"/p"}, ""}},
                               {"cold", {{"fetch"}, ""}},
                               {"location", {{"rack2"}, ""}},
                               {"expect_others", {{"true"}, ""}},
                               {"etcd.endpoints", {{"http://b:2379"}, ""}},
                               {"metrics_listen", {{"127.0.0.1:9464"}, ""}}};
  const auto config = make_config(reloaded_values(before, after));
  REQUIRE(config.ok());
  CHECK(config->origin == "/o");
  CHECK(config->etcd.endpoints == std::vector<std::string>{"http://a:2379"});
  CHECK(!config->metrics_listen.has_value());
  CHECK(config->cold == "fetch");
  CHECK(config->location == "rack2");
  CHECK(config->expect_others);
  CHECK(!config->gc.users.contains(12));
}

TEST_CASE("every setting has an option of its own") {
  std::set<std::string> options;
  for (const Setting& setting : settings()) CHECK(options.insert(option_of(setting)).second);
  CHECK(options.contains("--etcd-password-file"));
}

}  // namespace
}  // namespace weft

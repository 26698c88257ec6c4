#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "base/json.h"
#include "control/server.h"
#include "os/lookups/users.h"
#include "os/sys.h"
#include "run.h"
#include "testing.h"
#include "weft/programs/operations.h"
#include "weft/store/store.h"

using weft::testing::Cli;
using weft::testing::must;
using weft::testing::Outcome;
using weft::testing::random_bytes;
using weft::testing::read_text;
using weft::testing::TempDir;
using weft::testing::write_file;

namespace fs = std::filesystem;

namespace {

// Flattens JSON into "path: value" pairs, such as "versions.0.number" -> "1".
class Flat final : public weft::JsonHandler {
 public:
  std::map<std::string, std::string> values;

  weft::Status begin_object() override { return begin(-1); }
  weft::Status end_object() override { return end(); }
  weft::Status begin_array() override { return begin(0); }
  weft::Status end_array() override { return end(); }
  weft::Status key(std::string_view name) override {
    levels_.back().name = name;
    return {};
  }
  weft::Status text(std::string_view value) override { return put(std::string(value)); }
  weft::Status number(std::uint64_t value) override { return put(std::to_string(value)); }
  weft::Status negative(std::int64_t value) override { return put(std::to_string(value)); }
  weft::Status real(double value) override { return put(std::to_string(value)); }
  weft::Status boolean(bool value) override { return put(value ? "true" : "false"); }
  weft::Status null() override { return put("null"); }

 private:
  struct Level {
    int index;  // -1: an object
    std::string name;
  };
  weft::Status begin(int index) {
    levels_.push_back({index, "0"});
    return {};
  }
  weft::Status end() {
    levels_.pop_back();
    next();
    return {};
  }
  weft::Status put(std::string value) {
    std::string path;
    for (const Level& level : levels_) path += (path.empty() ? "" : ".") + level.name;
    values[path] = std::move(value);
    next();
    return {};
  }
  void next() {
    if (!levels_.empty() && levels_.back().index >= 0) levels_.back().name = std::to_string(++levels_.back().index);
  }
  std::vector<Level> levels_;
};

std::map<std::string, std::string> flat(const Outcome& outcome) {
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.ends_with("}\n"));
  Flat handler;
  REQUIRE(weft::parse_json(outcome.out, 32, handler).ok());
  return handler.values;
}

struct World {
  World() { cli.variables["WEFT_STORE"] = dir / "store"; }

  void write_model(const std::string& name, std::uint64_t seed) const {
    write_file(dir / name + "/model.safetensors",
               weft::testing::safetensors_file({{"a.weight", "F32", {512}, random_bytes(2048, seed)},
                                                {"b.weight", "F32", {512}, random_bytes(2048, 99)}}));
    write_file(dir / name + "/config.json", "{}");
  }

  Outcome done(const std::vector<std::string>& args) {
    Outcome outcome = cli(args);
    if (outcome.code != 0) FAIL(outcome.err);
    return outcome;
  }

  std::string failed(const std::vector<std::string>& args) { return refused(args, 1); }
  std::string misused(const std::vector<std::string>& args) { return refused(args, 2); }
  std::string refused(const std::vector<std::string>& args, int code) {
    Outcome outcome = cli(args);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("weft: "));
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    return outcome.err;
  }

  // Publishes bert@1, and bert@2 derived from it.
  void publish_two() {
    write_model("a", 1);
    write_model("b", 2);
    done({"import", dir / "a", "--name", "bert", "--tag", "base", "-q"});
    done({"import", dir / "b", "--name", "bert", "--parent", "bert@base", "--message", "layer a\ntuned", "--metric",
          "accuracy=0.93", "-q"});
  }

  bool contains(const std::string& text, const std::string& part) const { return text.find(part) != std::string::npos; }

  TempDir dir;
  Cli cli;
};

}  // namespace

TEST_CASE("import makes the store, and says what was new and what was shared") {
  World w;
  w.write_model("a", 1);
  w.write_model("b", 2);
  Outcome first = w.done({"import", w.dir / "a", "--name", "bert"});
  CHECK(first.err == "weft: made a store in " + (w.dir / "store") + "\n");
  CHECK(w.contains(first.out, "bert@1  2 tensors, 2 files, "));
  CHECK(w.contains(first.out, " new, 0 B shared\n"));
  Outcome second = w.done({"import", w.dir / "b", "--name", "bert"});
  CHECK(second.err.empty());
  CHECK(w.contains(second.out, ": 2.0 KiB new, "));
  CHECK(w.done({"import", w.dir / "b", "--name", "bert"}).out == "bert@2 has this content already; no new version\n");
  auto json = flat(w.done({"import", w.dir / "b", "--name", "bert", "--json"}));
  CHECK(json.size() == 12);  // and empty lists
  CHECK(json["model"] == "bert");
  CHECK(json["version"] == "2");
  CHECK(json["made"] == "false");
  CHECK(json["files"] == "2");
  CHECK(json["tensors"] == "2");
}

TEST_CASE("the store is --store before or after the command, WEFT_STORE, or the user's own") {
  World w;
  w.write_model("a", 1);
  w.cli.variables.clear();
  w.cli.variables["HOME"] = w.dir / "home";
  std::string none = w.failed({"ls"});
  CHECK(w.contains(none, w.dir / "home/.local/share/weft"));
  CHECK(w.contains(none, "--store or WEFT_STORE names another"));
  w.done({"import", w.dir / "a", "--name", "m"});
  CHECK(fs::exists(w.dir / "home/.local/share/weft"));
  w.cli.variables["XDG_DATA_HOME"] = w.dir / "data";
  w.done({"import", w.dir / "a", "--name", "m"});
  CHECK(fs::exists(w.dir / "data/weft"));
  w.cli.variables["WEFT_STORE"] = w.dir / "variable";
  w.done({"import", w.dir / "a", "--name", "m"});
  CHECK(fs::exists(w.dir / "variable"));
  w.done({"--store", w.dir / "before", "import", w.dir / "a", "--name", "m"});
  CHECK(fs::exists(w.dir / "before"));
  w.done({"import", w.dir / "a", "--name", "m", "--store=" + (w.dir / "after")});
  CHECK(fs::exists(w.dir / "after"));
}

TEST_CASE("without --store and WEFT_STORE the store is that of weft.conf, and status says so") {
  World w;
  w.write_model("a", 1);
  w.cli.config_file = w.dir / "weft.conf";
  w.cli.variables = {{"HOME", w.dir / "home"}};
  write_file(w.dir / "weft.conf", "store = '" + (w.dir / "configured") + "'\n");
  CHECK(w.contains(w.failed({"import", w.dir / "a", "--name", "m"}), "is its disk mounted?"));
  w.done({"init"});
  w.done({"import", w.dir / "a", "--name", "m"});
  CHECK(fs::exists(w.dir / "configured"));
  CHECK_FALSE(fs::exists(w.dir / "home"));
  CHECK(w.done({"status"}).out.starts_with("store     " + (w.dir / "configured") + ", by " + (w.dir / "weft.conf")));
  w.cli.variables["WEFT_STORE"] = w.dir / "other";
  w.done({"init"});
  CHECK(w.contains(w.done({"status"}).out, ", by WEFT_STORE\n"));
  CHECK(w.contains(w.done({"status", "--store", w.dir / "configured"}).out, ", by --store\n"));
}

TEST_CASE("status is at most ten lines with a verdict, and --all shows the rest") {
  World w;
  w.publish_two();
  const std::string brief = w.done({"status"}).out;
  CHECK(std::count(brief.begin(), brief.end(), '\n') <= 10);
  CHECK(w.contains(brief, "scrubbed  never completely\n"));
  const bool full = w.contains(brief, "problem   the disk has ");  // of the machine that runs the test
  CHECK(brief.ends_with("healthy\n") == !full);
  CHECK_FALSE(w.contains(brief, "assembled"));
  CHECK(w.contains(w.done({"status", "--all"}).out, "assembled"));
  auto json = flat(w.done({"status", "--json"}));
  CHECK(json["healthy"] == (full ? "false" : "true"));
  CHECK(json["chosen_by"] == "WEFT_STORE");
}

TEST_CASE("status names the program, and a daemon of another version with what to do") {
  World w;
  w.publish_two();
  w.cli.program = "/opt/weft";
  CHECK(w.contains(w.done({"status"}).out, "program   /opt/weft, version " WEFT_VERSION "\n"));
  CHECK(flat(w.done({"status", "--json"}))["program"] == "/opt/weft");
  const auto server = must(weft::control::Server::listen(w.dir / "store/weftd.sock", {}));
  std::string version = WEFT_VERSION;
  server->on("status", weft::control::Runs::own_thread, [&version](const auto& call) {
    call->answer(fmt::format(R"({{"weft":"{}","program":"/usr/sbin/weftd"}})", version));
  });
  server->start();
  CHECK_FALSE(w.contains(w.done({"status"}).out, "is version"));
  version = "0.0.9";
  const std::string problem = "/usr/sbin/weftd is version 0.0.9, and /opt/weft is version " WEFT_VERSION ": `systemctl";
  CHECK(w.contains(w.done({"status"}).out, "problem   " + problem));
  CHECK(flat(w.done({"status", "--json"}))["healthy"] == "false");
  CHECK(w.contains(w.failed({"tag", "bert", "x"}), "; " + problem));
}

TEST_CASE("import makes no store of a directory with other files, nor after invalid options") {
  World w;
  w.write_model("a", 1);
  w.failed({"import", w.dir / "a", "--name", "3"});
  w.failed({"import", w.dir / "a", "--name", "m", "--tag", "latest"});
  w.failed({"import", w.dir / "none", "--name", "m"});
  CHECK_FALSE(fs::exists(w.dir / "store"));
  write_file(w.dir / "store/something", "else");
  CHECK(w.contains(w.failed({"import", w.dir / "a", "--name", "m"}), w.dir / "store"));
  CHECK(w.contains(w.failed({"ls"}), w.dir / "store"));
  w.cli.variables["WEFT_STORE"] = w.dir / "none";
  CHECK_FALSE(w.contains(w.failed({"ls"}), "WEFT_STORE"));
  CHECK_FALSE(fs::exists(w.dir / "none"));
  CHECK(w.contains(w.failed({"init", "--store", w.dir / "store"}), w.dir / "store"));
  w.done({"init", "--store", w.dir / "deep/er/store"});
  CHECK(w.done({"ls", "--store", w.dir / "deep/er/store"}).out.empty());
}

TEST_CASE("import makes no store if weft.conf names one") {
  World w;
  w.write_model("a", 1);
  w.cli.config_file = w.dir / "weft.conf";
  fs::create_directories(w.dir / "store");  // no store in it
  for (const char* text : {"store = '/srv/weft'\n", "# ours\nname = 'n'\n\"store\"=\"/srv/weft\" # here\n[etcd]\n"}) {
    write_file(w.dir / "weft.conf", text);
    const std::string refused = w.failed({"import", w.dir / "a", "--name", "m"});
    CHECK_MESSAGE(w.contains(refused, "weft.conf names the store /srv/weft: is its disk mounted?"), refused);
    CHECK(fs::is_empty(w.dir / "store"));
  }
  w.done({"init"});
  w.done({"import", w.dir / "a", "--name", "m"});
  for (const char* text : {"", "# store = '/srv/weft'\n", "[other]\nstore = '/srv/weft'\n", "stores = 'x'\n"}) {
    fs::remove_all(w.dir / "store");
    write_file(w.dir / "weft.conf", text);
    w.done({"import", w.dir / "a", "--name", "m"});
  }
}

TEST_CASE("ls shows models, versions, files, tensors, names") {
  World w;
  w.publish_two();
  w.done({"import", w.dir / "a", "--name", "org/small", "-q"});
  std::string models = w.done({"ls"}).out;
  CHECK(models.starts_with("MODEL "));
  CHECK(w.contains(models, "base=1"));
  CHECK(w.done({"ls", "--names"}).out == "bert\norg/small\n");
  CHECK(w.done({"ls", "org", "--names"}).out == "org/small\n");
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@2\n");
  CHECK(w.done({"ls", "bert@2", "--names"}).out == "config.json\nmodel.safetensors\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"ls", "--json"}, {"ls", "bert", "--json"}, {"ls", "bert@2", "--json"}, {"ls", "--removed", "--json"}}) {
    std::vector<std::string> named = words;
    named.emplace_back("--names");
    CHECK(w.done(named).out == w.done(words).out);
    CHECK(w.done(words).out.starts_with("{"));
  }
  const std::string versions = w.done({"ls", "bert"}).out;
  CHECK(w.contains(versions, " latest "));
  CHECK(w.contains(versions, " layer a\n"));
  CHECK(w.contains(w.done({"ls", "bert@base"}).out, "safetensors        2  model.safetensors\n"));
  CHECK(w.contains(w.done({"ls", "bert@2", "-l"}).out, "2.0 KiB  F32    [512]  a.weight  model.safetensors\n"));
  CHECK(w.contains(w.failed({"ls", "nosuch"}), "no model nosuch; there are bert, org/small"));

  auto json = flat(w.done({"ls", "--json"}));
  CHECK(json["models.0.model"] == "bert");
  CHECK(json["models.0.latest"] == "2");
  CHECK(json["models.0.versions"] == "2");
  CHECK(json["models.0.tags.base"] == "1");
  CHECK(json["models.1.model"] == "org/small");
  json = flat(w.done({"ls", "bert", "--json"}));
  CHECK(json["versions.1.version"] == "2");
  json = flat(w.done({"ls", "bert@2", "--json"}));
  CHECK(json["version"] == "2");
  CHECK(json["files.1.path"] == "model.safetensors");
  CHECK(json["files.1.tensors"] == "2");
  json = flat(w.done({"ls", "bert@2", "--tensors", "--json"}));
  CHECK(json["files.1.tensors.0.name"] == "a.weight");
  CHECK(json["files.1.tensors.0.shape.0"] == "512");
  CHECK(json["files.1.tensors.0.bytes"] == "2048");
}

TEST_CASE("log and info print the message, tags and metrics of a version") {
  World w;
  w.publish_two();
  std::string log = w.done({"log", "bert"}).out;
  CHECK(log.starts_with("bert@2  "));
  const std::string user = weft::user_name(weft::own_user());
  CHECK(w.contains(log, "(latest)\n    parents  bert@1\n    metrics  accuracy=0.93\n    by       " + user +
                            "\n    layer a\n    tuned\n\nbert@1  "));
  auto json = flat(w.done({"log", "bert", "--json"}));
  CHECK(json["versions.0.version"] == "2");
  CHECK(json["versions.0.user"] == user);
  CHECK(json["versions.0.node"].empty());
  CHECK(json["versions.0.latest"] == "true");
  CHECK(json["versions.0.message"] == "layer a\ntuned");
  CHECK(json["versions.0.metrics.accuracy"] == "0.93");
  CHECK(json["versions.0.parents.0.model"] == "bert");
  CHECK(json["versions.0.parents.0.version"] == "1");
  CHECK(json["versions.1.tags.0"] == "base");
  std::string info = w.done({"info", "bert"}).out;
  CHECK(info.starts_with("bert@2\n"));
  CHECK(w.contains(info, "2 files, 2 tensors"));
  CHECK(w.contains(info, "2 F32"));
  CHECK(w.contains(w.done({"info", "bert@1"}).out, "children   bert@2\n"));
  flat(w.done({"info", "bert@1", "--json"}));
}

TEST_CASE("find sorts by a metric, lists the first versions, and prints columns") {
  World w;
  const char* losses[] = {"0.50001", "0.2123456", "", "0.9"};
  for (int i = 0; i < 4; ++i) {
    w.write_model("m", 20 + i);
    std::vector<std::string> words = {"import", w.dir / "m", "--name", "m", "--message", "number " + std::to_string(i)};
    if (losses[i][0] != 0) words.insert(words.end(), {"--metric", std::string("loss=") + losses[i]});
    w.done(words);
  }
  CHECK(w.done({"find", "--sort", "metric.loss"}).out == "m@2\nm@1\nm@4\nm@3\n");
  CHECK(w.done({"find", "--sort", "-metric.loss", "--top", "2"}).out == "m@4\nm@1\n");
  CHECK(w.done({"find", "version > 1", "--sort=-time", "--top", "2"}).out == "m@4\nm@3\n");
  CHECK(w.done({"find", "--top", "1"}).out == "m@1\n");
  CHECK(w.done({"find", "--sort", "bytes"}).out == "m@1\nm@2\nm@3\nm@4\n");
  CHECK(w.done({"find", "--sort=-bytes", "--top", "3"}).out == "m@1\nm@2\nm@3\n");
  w.done({"tag", "m@2", "best"});
  CHECK(w.done({"find", "--sort", "metric.loss", "--top", "1", "--columns", "tags,metric.loss,message"}).out ==
        "VERSION  TAGS    loss  MESSAGE\n"
        "m@2      best  0.2123  number 1\n");
  auto json = flat(w.done({"find", "--sort", "metric.loss", "--top", "1", "--json"}));
  CHECK(json["versions.0.version"] == "2");
  CHECK(json["versions.0.metrics.loss"] == "0.2123456");
  CHECK(w.contains(w.done({"ls", "m"}).out, "  loss=0.2123  number 1\n"));
}

TEST_CASE("a note replaces the message, and adds and replaces metrics") {
  World w;
  w.publish_two();
  CHECK(w.done({"note", "bert@2", "--metric", "loss=0.1", "--metric", "accuracy=0.95"}).out == "noted at bert@2\n");
  auto json = flat(w.done({"log", "bert", "--json"}));
  CHECK(json["versions.0.message"] == "layer a\ntuned");
  CHECK(json["versions.0.metrics.accuracy"] == "0.95");
  CHECK(json["versions.0.metrics.loss"] == "0.1");
  json = flat(w.done({"note", "bert@base", "-m", "the first", "--json"}));
  CHECK(json["model"] == "bert");
  CHECK(json["version"] == "1");
  CHECK(flat(w.done({"log", "bert", "--json"}))["versions.1.message"] == "the first");
  w.done({"note", "bert@1", "-m", ""});
  json = flat(w.done({"log", "bert", "--json"}));
  CHECK(json["versions.1.message"].empty());
  CHECK(w.contains(w.misused({"note", "bert@1"}), "expected --message or --metric"));
  CHECK(w.contains(w.misused({"note", "bert@1", "--metric", "loss"}), "expected KEY=VALUE"));
  CHECK(w.contains(w.failed({"note", "bert@9", "-m", "x"}), "9"));
  w.failed({"note", "bert@1", "-m", std::string(1, '\a')});
  w.done({"fsck", "--rebuild"});
  CHECK(flat(w.done({"log", "bert", "--json"}))["versions.0.metrics.accuracy"] == "0.95");
}

TEST_CASE("mv renames a model, and its lineage follows") {
  World w;
  w.publish_two();
  CHECK(w.done({"mv", "bert", "org/bert"}).out == "bert -> org/bert\n");
  CHECK(w.failed({"info", "bert"}) == "weft: bert was renamed to org/bert\n");
  CHECK(w.failed({"log", "bert@2"}) == "weft: bert was renamed to org/bert\n");
  auto json = flat(w.done({"log", "org/bert", "--json"}));
  CHECK(json["model"] == "org/bert");
  CHECK(json["versions.0.parents.0.model"] == "org/bert");
  CHECK(json["versions.1.tags.0"] == "base");
  CHECK(w.contains(w.failed({"mv", "bert", "x"}), "bert was renamed to org/bert"));
  CHECK(w.contains(w.failed({"mv", "nosuch", "x"}), "no model nosuch"));
  CHECK(w.contains(w.failed({"mv", "org/bert", "org/bert"}), "expected another name"));
  CHECK(w.contains(w.failed({"mv", "org/bert", "a//b"}), "expected a name"));
  w.done({"import", w.dir / "a", "--name", "bert", "-q"});
  CHECK(w.contains(w.done({"ls", "bert"}).out, "3"));
  CHECK(w.failed({"info", "bert@1"}) == "weft: bert@1 was renamed to org/bert@1\n");
  CHECK(w.contains(w.failed({"mv", "org/bert", "bert"}), "expected a name that no other model has had"));
  json = flat(w.done({"mv", "org/bert", "moved", "--json"}));
  CHECK(json["model"] == "org/bert");
  CHECK(json["to"] == "moved");
  w.done({"fsck", "--rebuild"});
  w.done({"info", "moved@base"});
  w.done({"info", "bert@3"});
}

TEST_CASE("tags are set, moved, listed and deleted") {
  World w;
  w.publish_two();
  CHECK(w.done({"tag", "bert", "prod"}).out == "prod -> bert@2\n");
  CHECK(w.done({"tag", "bert@1", "prod"}).out == "prod -> bert@1\n");
  auto json = flat(w.done({"tag", "bert", "--json"}));
  CHECK(json["tags.0.tag"] == "base");
  CHECK(json["tags.1.tag"] == "prod");
  CHECK(json["tags.1.version"] == "1");
  CHECK(json["tags.1.owner"] == "null");
  CHECK(w.done({"tag", "--protect", "bert@prod"}).out == "prod of bert is protected\n");
  CHECK(flat(w.done({"tag", "bert", "--json"}))["tags.1.owner"] != "null");
  CHECK(w.contains(w.misused({"tag", "--protect", "bert"}), "--protect: expected MODEL@TAG"));
  CHECK(w.contains(w.misused({"tag", "--protect", "--delete", "bert@prod"}), "--protect: expected MODEL@TAG"));
  CHECK(w.contains(w.failed({"tag", "--unprotect", "bert@none"}), "none"));
  CHECK(w.done({"tag", "--unprotect", "bert@prod"}).out == "prod of bert is not protected\n");
  json = flat(w.done({"tag", "--delete", "bert", "prod", "--json"}));
  CHECK(json["version"] == "null");
  CHECK_FALSE(w.contains(w.done({"tag", "bert"}).out, "prod"));
  CHECK(w.contains(w.done({"tag", "bert", "--names"}).out, "bert@base\n"));
  CHECK(w.done({"tag", "bert", "--names", "--json"}).out == w.done({"tag", "bert", "--json"}).out);
  CHECK(w.contains(w.failed({"tag", "bert", "3"}), "3"));
  CHECK(w.contains(w.failed({"tag", "bert", "latest"}), "latest"));
  w.failed({"tag", "--delete", "bert", "prod"});
  w.failed({"tag", "--delete", "nosuch", "prod"});
}

TEST_CASE("tag --log lists the changes of tags, with the user who made them") {
  World w;
  w.publish_two();
  w.done({"tag", "bert@1", "prod"});
  w.done({"tag", "bert@2", "prod"});
  w.done({"rm", "--force", "bert@2"});
  w.done({"fsck", "--rebuild"});
  const std::string user = weft::user_name(weft::own_user());
  auto json = flat(w.done({"tag", "--log", "bert", "prod", "--json"}));
  CHECK(json["model"] == "bert");
  CHECK(json["changes.0.tag"] == "prod");
  CHECK(json["changes.0.before"] == "2");
  CHECK(json["changes.0.version"] == "null");
  CHECK(json["changes.0.user"] == user);
  CHECK(json["changes.0.node"] == "null");
  CHECK(json["changes.0.time"].ends_with("Z"));
  CHECK(json["changes.1.before"] == "1");
  CHECK(json["changes.1.version"] == "2");
  CHECK(json["changes.2.before"] == "null");
  CHECK_FALSE(json.contains("changes.3.tag"));
  const std::string all = w.done({"tag", "--log", "bert"}).out;
  CHECK(all.starts_with("CHANGED           TAG   FROM  TO  BY\n"));
  CHECK(w.contains(all, fmt::format("  prod     2   -  {}\n", user)));
  CHECK(all.ends_with(fmt::format("  base     -   1  {}\n", user)));
  const Outcome none = w.done({"tag", "--log", "bert", "nosuch"});
  CHECK(none.out.empty());
  CHECK(none.err == "weft: bert: no change of tag nosuch is known\n");
  w.failed({"tag", "--log", "nosuch"});
}

TEST_CASE("rm takes versions away, log remembers them, and numbers do not come back") {
  World w;
  w.publish_two();
  CHECK(w.contains(w.failed({"rm", "--force", "bert@1", "bert@9"}), "bert@9"));
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@2\n");
  CHECK(w.done({"rm", "bert@2", "bert@2"}).out == "removed bert@2\n`weft undelete` brings it back until the next gc\n");
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\n");
  CHECK(w.contains(w.done({"log", "bert"}).out, "(removed "));
  w.done({"import", w.dir / "b", "--name", "bert"});
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@3\n");
  auto json = flat(w.done({"rm", "--all", "--force", "bert", "--json"}));
  CHECK(json["removed.0.version"] == "1");
  CHECK(json["removed.1.version"] == "3");
  CHECK(json["kept_until"] == "null");
  CHECK(json["kept_until_ns"] == "null");
  CHECK(w.done({"ls"}).out.empty());
  CHECK(w.contains(w.failed({"rm", "--all", "bert"}), "all versions of bert were removed"));
}

TEST_CASE("undelete brings removed versions back, with the tags that lead to no other version") {
  World w;
  w.publish_two();
  w.done({"tag", "bert@1", "stable"});
  w.done({"rm", "--all", "--force", "bert", "-q"});
  CHECK(w.done({"ls", "--removed", "--names"}).out == "bert@1\nbert@2\n");
  CHECK(w.done({"ls", "--removed", "other"}).out.empty());
  auto json = flat(w.done({"ls", "--removed", "bert", "--json"}));
  CHECK(json["removed.0.tags.1"] == "stable");
  CHECK(json["removed.1.version"] == "2");
  CHECK(w.done({"undelete", "bert@2"}).out == "undeleted bert@2\n");
  w.done({"tag", "bert@2", "stable"});
  CHECK(w.done({"undelete", "bert@1", "bert@1"}).out ==
        "undeleted bert@1, with its tags: base\ntag stable leads to bert@2 now, and stays there\n");
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@2\n");
  CHECK(w.contains(w.failed({"undelete", "bert@1"}), "bert@1: it is not removed"));
  w.done({"rm", "--force", "bert@1", "-q"});
  w.done({"tag", "bert@2", "base"});
  json = flat(w.done({"undelete", "bert@1", "--json"}));
  CHECK(json["undeleted.0.model"] == "bert");
  CHECK(json["undeleted.0.version"] == "1");
  CHECK(json["undeleted.0.moved.0.tag"] == "base");
  CHECK(json["undeleted.0.moved.0.version"] == "2");
  w.done({"rm", "bert@1", "-q"});
  w.done({"gc"});
  CHECK(w.failed({"undelete", "bert@1"}) == "weft: bert@1: gc has freed its content\n");
  CHECK(w.contains(w.failed({"undelete", "bert@9"}), "bert@9: there was no such version"));
  CHECK(w.done({"ls", "--removed"}).out.empty());
  w.done({"fsck"});
}

TEST_CASE("rm keeps a version that has a tag, unless it is forced") {
  World w;
  w.publish_two();
  const std::string refused = "weft: bert@1 has the tag base: `weft tag -d bert base` first, or --force\n";
  CHECK(w.failed({"rm", "bert@2", "bert@base"}) == refused);
  CHECK(w.failed({"rm", "--all", "bert"}) == refused);
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@2\n");
  w.done({"tag", "bert@1", "stable"});
  CHECK(w.contains(w.failed({"rm", "bert@1"}), "has the tag base and 1 more"));
  CHECK(w.done({"rm", "--force", "bert@1", "-q"}).out == "removed bert@1\n");
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@2\n");
  w.done({"rm", "bert@2"});
}

TEST_CASE("rm --keep removes old versions, but for tagged ones and the best by a metric") {
  World w;
  const char* losses[] = {"0.5", "0.2", "none", "0.9", "0.4", "0.3"};
  for (int i = 0; i < 6; ++i) {
    w.write_model("m", 10 + i);
    w.done({"import", w.dir / "m", "--name", "m", "--metric", std::string("loss=") + losses[i], "-q"});
  }
  w.done({"tag", "m@1", "first"});
  CHECK(w.done({"rm", "m", "--keep", "1", "--keep-best", "loss", "--dry-run"}).out ==
        "would remove m@3\nwould remove m@4\nwould remove m@5\n");
  CHECK(w.done({"rm", "m", "--keep", "1", "--keep-best=-loss", "-n", "-q"}).out ==
        "would remove m@2\nwould remove m@3\nwould remove m@5\n");
  CHECK(w.contains(w.failed({"rm", "m", "--keep", "1", "--keep-best", "accuracy"}), "its metric accuracy, got none"));
  CHECK(w.done({"ls", "m", "--names"}).out == "m@1\nm@2\nm@3\nm@4\nm@5\nm@6\n");
  auto json = flat(w.done({"rm", "m", "m", "--keep", "2", "--keep-best", "loss", "--json"}));
  CHECK(json["dry_run"] == "false");
  CHECK(json["removed.0.version"] == "3");
  CHECK(json["removed.1.version"] == "4");
  CHECK_FALSE(json.contains("removed.2.version"));
  CHECK(w.done({"ls", "m", "--names"}).out == "m@1\nm@2\nm@5\nm@6\n");
  CHECK(w.done({"rm", "m", "m", "--keep", "1", "-n"}).out == "would remove m@2\nwould remove m@5\n");
  CHECK(w.done({"rm", "m", "--keep", "9"}).out == "no version to remove\n");
}

TEST_CASE("import --keep says what it removed") {
  World w;
  w.publish_two();
  w.write_model("c", 3);
  CHECK(w.contains(w.done({"import", w.dir / "c", "--name", "bert", "--keep", "1"}).out, "\n  removed bert@2\n"));
  w.write_model("d", 4);
  auto json = flat(w.done({"import", w.dir / "d", "--name", "bert", "--keep", "1", "--json"}));
  CHECK(json["removed.0.model"] == "bert");
  CHECK(json["removed.0.version"] == "3");
  CHECK(json["not_removed"].empty());
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@4\n");
}

TEST_CASE("an import of the same content says what is not kept") {
  World w;
  w.publish_two();
  const Outcome again = w.done({"import", w.dir / "b", "--name", "bert", "--message", "other", "--metric",
                                "accuracy=0.93", "--metric", "loss=1", "--tag", "kept"});
  CHECK(again.out == "bert@2 has this content already; no new version\n");
  CHECK(again.err == "weft: not kept: message, metric loss\n");
  CHECK(w.contains(w.done({"tag", "bert"}).out, "kept"));
  auto json = flat(w.done({"import", w.dir / "b", "--name", "bert", "--metric", "loss=1", "--json"}));
  CHECK(json["not_kept.0"] == "metric loss");
  CHECK(w.done({"import", w.dir / "b", "--name", "bert", "--parent", "bert@1"}).err.empty());
}

TEST_CASE("an import with --move removes empty directories, and keeps those that have entries") {
  World w;
  write_file(w.dir / "m/config.json", "{}");
  write_file(w.dir / "m/left/.git/HEAD", "ref");
  fs::create_directories(w.dir / "m/empty/inner");
  const std::string said = w.done({"import", w.dir / "m", "--name", "moved", "--move"}).err;
  CHECK(said.ends_with(fmt::format("weft: {}: left out: it is a directory of git\n", w.dir / "m/left/.git")));
  CHECK_FALSE(fs::exists(w.dir / "m/config.json"));
  CHECK_FALSE(fs::exists(w.dir / "m/empty/inner"));
  CHECK(fs::exists(w.dir / "m/left/.git/HEAD"));
}

TEST_CASE("the message that an import of a hub's cache makes up is not missed, and its commit is kept") {
  World w;
  const std::string commit(40, 'c');
  const std::string snapshots = w.dir / "hub/models--org--bert/snapshots/";
  write_file(snapshots + commit + "/config.json", "{}");
  CHECK(w.contains(w.done({"import", snapshots + commit}).out, "org/bert@1"));
  CHECK(w.contains(w.done({"info", "org/bert", "--json"}).out, fmt::format(R"("commit":"{}")", commit)));
  CHECK(w.contains(w.done({"info", "org/bert"}).out, "  commit     " + commit));
  CHECK_FALSE(w.contains(w.done({"import", snapshots + commit}).err, "not kept"));
  CHECK(w.contains(w.done({"import", snapshots + commit, "-m", "mine"}).err, "not kept: message\n"));
  const std::string other(40, 'd');
  write_file(snapshots + other + "/config.json", "{}");
  CHECK(w.contains(w.done({"import", snapshots + other}).err, "not kept: source\n"));
}

TEST_CASE("a list has what the daemon had when it called its store complete") {
  World w;
  w.publish_two();
  const auto server = must(weft::control::Server::listen(w.dir / "store/weftd.sock", {}));
  server->on("status", weft::control::Runs::own_thread, [&w](const auto& call) {
    weft::OpenOptions options;
    options.write = true;
    options.decode = weft::content_decoder();
    must(must(weft::Store::open(w.dir / "store", options))->remove_version("bert", 2));
    call->answer(R"({"registry":{"complete":true}})");
  });
  server->start();
  auto json = flat(w.done({"ls", "bert", "--json"}));
  CHECK(json["complete"] == "true");
  CHECK(json["versions.0.version"] == "1");
  CHECK_FALSE(json.contains("versions.1.version"));
}

TEST_CASE("a log says that its node is catching up, also if the model is not there yet") {
  World w;
  w.publish_two();
  CHECK(flat(w.done({"log", "bert", "--json"}))["complete"] == "true");
  const auto server = must(weft::control::Server::listen(w.dir / "store/weftd.sock", {}));
  server->on("status", weft::control::Runs::own_thread,
             [](const auto& call) { call->answer(R"({"registry":{"complete":false}})"); });
  server->start();
  CHECK(w.contains(w.done({"log", "bert"}).err, "catching up"));
  CHECK(flat(w.done({"log", "bert", "--json"}))["complete"] == "false");
  CHECK(w.contains(w.failed({"log", "new"}), "catching up"));
}

TEST_CASE("du adds up to what is stored, gc gives back, fsck finds nothing wrong") {
  World w;
  w.publish_two();
  auto du = flat(w.done({"du", "--json"}));
  auto status = flat(w.done({"status", "--json"}));
  CHECK(du["owned_bytes"] == status["blob_bytes"]);
  CHECK(du["models.0.versions.1.shared_bytes"] != "0");
  CHECK(w.contains(w.done({"du"}).out, "  bert\n"));
  CHECK(w.contains(w.done({"du", "bert"}).out, "  bert@2\n"));
  w.done({"rm", "bert@2", "-q"});
  auto dry = flat(w.done({"gc", "--dry-run", "--json"}));
  CHECK(dry["dry_run"] == "true");
  CHECK(dry["versions_reaped"] == "1");
  CHECK(w.contains(w.done({"gc", "--dry-run"}).out, "would free "));
  auto gc = flat(w.done({"gc", "--json"}));
  CHECK(gc["bytes_freed"] == dry["bytes_freed"]);
  CHECK(w.contains(w.done({"gc"}).out, "freed 0 B on disk"));
  auto fsck = flat(w.done({"fsck", "--json"}));
  CHECK(fsck["clean"] == "true");
  CHECK(fsck["versions"] == "1");
  CHECK(w.contains(w.done({"fsck", "--quick"}).out, "checked: "));
  fsck = flat(w.done({"fsck", "--rebuild", "--json"}));
  CHECK(fsck["rebuilt"] == "true");
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\n");
}

TEST_CASE("gc without a daemon keeps drafts for as long as weft.conf says") {
  World w;
  w.done({"init"});
  w.cli.config_file = w.dir / "weft.conf";
  write_file(w.dir / "store/drafts/tree/d/x", "x");
  const auto old = [&w](const std::vector<std::string>& command) {
    return flat(w.done(command)).contains("drafts.0.path");
  };
  const std::vector<std::string> gc{"gc", "--dry-run", "--json"}, status{"status", "--json"};
  CHECK_FALSE(old(gc));
  CHECK_FALSE(old(status));
  write_file(w.dir / "weft.conf", "store = '/srv/weft'\ndrafts_keep = '0s'\n");
  CHECK_FALSE(old(gc));
  const std::string ours = "store = '" + (w.dir / "store") + "'\n";
  write_file(w.dir / "weft.conf", ours + "drafts_keep = 'soon'\n");
  CHECK(w.contains(w.failed({"gc"}), "drafts_keep: expected a time"));
  CHECK(fs::exists(w.dir / "store/drafts/tree/d/x"));
  write_file(w.dir / "weft.conf", ours + "drafts_keep = '0s'\n");
  CHECK(old(gc));
  CHECK(old(status));
  CHECK(old({"gc", "--json"}));
  CHECK_FALSE(fs::exists(w.dir / "store/drafts/tree/d"));
}

TEST_CASE("export gives the files back") {
  World w;
  w.publish_two();
  Outcome outcome = w.done({"export", "bert@base", w.dir / "out"});
  CHECK(w.contains(outcome.out, "bert@1  2 files, "));
  CHECK(weft::testing::read_text(w.dir / "out/model.safetensors") ==
        weft::testing::read_text(w.dir / "a/model.safetensors"));
  CHECK(w.contains(w.failed({"export", "bert", w.dir / "out"}), "expected an empty directory"));
  auto json = flat(w.done({"export", "bert", w.dir / "out2", "--json"}));
  CHECK(json["version"] == "2");
  CHECK(json["files"] == "2");
}

TEST_CASE("a path of --from that is not there is an error, also if nothing is damaged") {
  World w;
  w.publish_two();
  const std::string refused = w.failed({"fsck", "--repair", "--from", w.dir / "a", "--from", w.dir / "nosuch"});
  CHECK(w.contains(refused, "--from: " + (w.dir / "nosuch")));
  w.done({"fsck", "--repair", "--from", w.dir / "a"});
}

TEST_CASE("an interrupted scrub exits by its signal, and goes on later") {
  World w;
  w.publish_two();
  w.cli.interrupt = 2;
  const Outcome stopped = w.cli({"scrub"});
  CHECK(stopped.code == 130);
  CHECK(w.contains(stopped.out, "to be continued"));
  w.cli.interrupt = 0;
  CHECK(w.contains(w.done({"scrub"}).out, "up to the end of the store"));
}

TEST_CASE("without a daemon the log of the store's weftd has the audit lines, if it is there") {
  World w;
  w.publish_two();
  w.cli.config_file = w.dir / "weft.conf";
  const std::string log = w.dir / "weftd.log";
  write_file(w.dir / "weft.conf",
             fmt::format("store = \"{}\"\nname = \"n7\"\nlog_file = \"{}\"\n", w.dir / "store", log));
  w.done({"pin", "bert@1"});
  CHECK_FALSE(fs::exists(log));
  write_file(log, "");
  w.done({"tag", "bert@1", "best"});
  w.done({"rm", "bert@1", "--force"});
  w.done({"rm", "bert@2", "--dry-run"});
  const std::string text = read_text(log);
  const std::string user =
      fmt::format("user={} uid={} outcome=done node=n7", weft::user_name(weft::own_user()), weft::own_user());
  CHECK(w.contains(text, "audit: action=tag object=\"bert@1 best\" " + user));
  CHECK(w.contains(text, "audit: action=remove object=bert@1 " + user));
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("an interrupted command says so, exits by its signal, and leaves things as they were") {
  World w;
  w.publish_two();
  w.write_model("c", 3);
  w.cli.interrupt = 2;
  Outcome import = w.cli({"import", w.dir / "c", "--name", "bert"});
  CHECK(import.code == 130);
  CHECK(import.err == "weft: interrupted, the store is as it was\n");
  w.cli.interrupt = 15;
  Outcome outcome = w.cli({"export", "bert", w.dir / "out"});
  CHECK(outcome.code == 143);
  CHECK_FALSE(fs::exists(w.dir / "out"));
  w.cli.interrupt = 0;
  CHECK(w.done({"ls", "bert", "--names"}).out == "bert@1\nbert@2\n");
}

TEST_CASE("a progress bar is drawn on a terminal alone, and not where it is unwanted") {
  World w;
  w.publish_two();
  CHECK(w.done({"fsck"}).err.empty());
  w.cli.terminal = true;
  w.write_model("c", 3);
  CHECK(w.contains(w.done({"import", w.dir / "c", "--name", "bert"}).err, "\x1b[K"));
  CHECK(w.done({"export", "bert", w.dir / "quiet", "--quiet"}).err.empty());
}

TEST_CASE("mount without mount.weft says where it was looked for") {
  World w;
  w.publish_two();
  CHECK(w.contains(w.failed({"mount", w.dir.path()}), "mount.weft: not found beside weft"));
}

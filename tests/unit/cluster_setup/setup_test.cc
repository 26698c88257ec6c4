#include "cluster_setup/setup.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "testing.h"
#include "weft/store/store.h"

using namespace weft;
using namespace weft::setup;
using namespace weft::testing;

namespace {

// A node whose programs are commands of the shell.
struct Made {
  explicit Made(const TempDir& area, std::string start = "true") : places(places_below(area / "node")) {
    plan.directories = {{places.base, 0700}, {places.settings, 0755}, {places.authority(), 0700}};
    plan.store = places.store;
    plan.files = {{places.config(), 0644, "store\n", false},
                  {places.setting("cluster.key"), 0600, "secret", true},
                  {places.authority() + "/ca.key", 0600, "secret", true},
                  {places.stop_script(), 0755, "echo stop >>" + area / "ran", false}};
    plan.data = {places.run};
    plan.start = {{"/bin/sh", "-c", "mkdir -p " + places.run + " && echo start >>" + area / "ran"},
                  {"/bin/sh", "-c", std::move(start)}};
  }
  Places places;
  Plan plan;
};

mode_t mode_of(const std::string& path) {
  struct stat st {};
  REQUIRE(::stat(path.c_str(), &st) == 0);
  return st.st_mode & 0777U;
}

bool is_there(const std::string& path) {
  return std::filesystem::exists(path);
}

}  // namespace

TEST_CASE("a setup creates what its plan says, and leave removes it but for the store") {
  const TempDir area;
  const Made made(area);
  {
    auto setup = must(NodeSetup::begin(made.places));
    must(setup.carry_out(made.plan));
    CHECK_FALSE(must(read_record(made.places)).finished);
    must(setup.finish());
  }
  CHECK(must(read_record(made.places)).finished);
  CHECK(read_text(made.places.config()) == "store\n");
  CHECK(mode_of(made.places.setting("cluster.key")) == 0600);
  CHECK(mode_of(made.places.authority()) == 0700);
  CHECK(Store::open(made.places.store, {}).ok());
  CHECK(NodeSetup::begin(made.places).error().code == Errc::exists);
  must(remove_setup(made.places));
  CHECK(read_text(area / "ran") == "start\nstop\n");
  CHECK_FALSE(is_there(made.places.settings));
  CHECK_FALSE(is_there(made.places.run));
  CHECK(Store::open(made.places.store, {}).ok());
}

TEST_CASE("a setup whose command fails is undone") {
  const TempDir area;
  const Made made(area, "echo no such unit >&2; exit 3");
  {
    auto setup = must(NodeSetup::begin(made.places));
    const Status failed = setup.carry_out(made.plan);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().message.find("exit code 3: no such unit") != std::string::npos);
  }
  CHECK(read_text(area / "ran") == "start\nstop\n");
  CHECK_FALSE(is_there(made.places.base));
}

TEST_CASE("a setup that was killed is undone by the next one") {
  const TempDir area;
  const Made made(area);
  {
    // As a setup that was killed leaves it: the record stands, and what it lists is there in part.
    auto setup = must(NodeSetup::begin(made.places));
    must(setup.carry_out(made.plan));
    std::filesystem::copy(made.places.base, area / "copy", std::filesystem::copy_options::recursive);
  }
  CHECK_FALSE(is_there(made.places.base));
  std::filesystem::rename(area / "copy", made.places.base);
  std::filesystem::remove(made.places.config());
  auto setup = must(NodeSetup::begin(made.places));
  CHECK(taken_by(made.plan).empty());
  must(setup.carry_out(made.plan));
  must(setup.finish());
  CHECK(read_text(made.places.config()) == "store\n");
}

TEST_CASE("a setup overwrites nothing, and names what is there") {
  const TempDir area;
  const Made made(area);
  write_file(made.places.config(), "mine\n");
  write_file(made.places.setting("other"), "mine\n");
  {
    auto setup = must(NodeSetup::begin(made.places));
    const Status refused = setup.carry_out(made.plan);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::exists);
    CHECK(refused.error().message.find("would overwrite " + made.places.config()) != std::string::npos);
  }
  CHECK(read_text(made.places.config()) == "mine\n");
  CHECK(read_text(made.places.setting("other")) == "mine\n");
  CHECK_FALSE(is_there(made.places.setting("cluster.key")));
}

TEST_CASE("a setup refuses a directory to which others can write, and one of another user") {
  const TempDir area;
  const Made made(area);
  std::filesystem::create_directory(made.places.base);
  REQUIRE(::chmod(made.places.base.c_str(), 0777) == 0);
  CHECK(NodeSetup::begin(made.places).error().code == Errc::permission);
  CHECK_FALSE(is_there(made.places.settings));
  REQUIRE(::chmod(made.places.base.c_str(), 0755) == 0);
  std::filesystem::create_directory(made.places.settings);
  REQUIRE(::chmod(made.places.settings.c_str(), 0775) == 0);
  CHECK(NodeSetup::begin(made.places).error().code == Errc::permission);
  REQUIRE(::chmod(made.places.settings.c_str(), 0755) == 0);
  { const auto setup = must(NodeSetup::begin(made.places)); }
  if (::geteuid() != 0) return;  // only root can give a directory away
  constexpr uid_t kOther = 4242;
  REQUIRE(::chown(made.places.base.c_str(), kOther, kOther) == 0);
  CHECK(NodeSetup::begin(made.places).error().code == Errc::permission);
}

TEST_CASE("an endpoint from another machine adds no line to the record") {
  const TempDir area;
  Made made(area);
  write_file(area / "victim", "mine\n");
  made.plan.endpoints = {"https://10.0.0.1:4713\nfile " + area / "victim"};
  {
    auto setup = must(NodeSetup::begin(made.places));
    const Status refused = setup.carry_out(made.plan);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::invalid);
  }
  CHECK_FALSE(is_there(made.places.base));
  CHECK(read_text(area / "victim") == "mine\n");
}

TEST_CASE("two setups of a node do not run at once") {
  const TempDir area;
  const Made made(area);
  const auto one = must(NodeSetup::begin(made.places));
  const auto other = NodeSetup::begin(made.places);
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().code == Errc::busy);
}

TEST_CASE("a setup that ends before it carries anything out leaves nothing") {
  const TempDir area;
  const Made made(area);
  { const auto setup = must(NodeSetup::begin(made.places)); }
  CHECK_FALSE(is_there(made.places.base));
}

TEST_CASE("a record survives its text, and other texts are none") {
  SetupRecord record;
  record.finished = true;
  record.join = "10.0.0.1:4712";
  record.store = "/s t";
  record.peer_url = "https://10.0.0.1:4714";
  record.endpoints = {"https://10.0.0.1:4713", "https://10.0.0.2:4713"};
  record.files = {"/a", "/b c"};
  record.data = {"/d"};
  record.directories = {"/e", "/e/f"};
  const SetupRecord read = must(parse_record(record_text(record)));
  CHECK(read.finished);
  CHECK(read.join == record.join);
  CHECK(read.store == record.store);
  CHECK(read.peer_url == record.peer_url);
  CHECK(read.endpoints == record.endpoints);
  CHECK(read.files == record.files);
  CHECK(read.data == record.data);
  CHECK(read.directories == record.directories);
  for (const char* const text : {"", "weft setup 1\n", "weft setup 2\nstate finished\n", "file /a\n", "\n\n"})
    CHECK_FALSE(parse_record(text).ok());
}

#include "publish/mounted_specs.h"

#include <doctest/doctest.h>

#include "fakes/node_fixture.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Base : Fixture {
  Base() {
    write_file(dir / "source/config.json", "{}");
    publish({dir / "source"}, "org/base");
    write_file(dir / "source/config.json", "{ }");
    version = publish({dir / "source"}, "org/base").outcome.version;
    REQUIRE(store->set_tag("org/base", "best", 1).ok());
  }
  std::string at(const std::string& base) {
    const std::vector<std::string> mounts = {"/mnt/weft", "/srv/other"};
    return must(mounted_spec(*must(store->snapshot()), mounts, base)).value_or(base);
  }
  VersionRow version;
};

}  // namespace

TEST_CASE("a path in a mount is the version that it shows") {
  Base base;
  for (const char* tree : {"models", "datasets", "layers", "tensors", "records", "lineage", "safetensors"})
    CHECK(base.at(std::string("/mnt/weft/") + tree + "/org/base/1") == "org/base@1");
  CHECK(base.at("/srv/other/models/org/base/2/") == "org/base@2");
  CHECK(base.at("/mnt/weft/models/org/base/2/deep/file") == "org/base@2");
  CHECK(base.at("/mnt/weft/models/org/base/latest") == "org/base@latest");
  CHECK(base.at("/mnt/weft/models/org/base/best") == "org/base@best");
  CHECK(base.at("/mnt//weft/./hub/../models/org/base/1") == "org/base@1");
  CHECK(base.at("/mnt/weft/models/org/base") == "org/base");
  CHECK(base.at("/mnt/weft/lineage/org/base/versions.tsv") == "org/base");
}

TEST_CASE("a snapshot in hub is the version with its content") {
  Base base;
  const std::string hub = "/mnt/weft/hub/models--org--base";
  const std::string digits = to_hex(base.version.manifest).substr(0, 40);
  CHECK(base.at(hub + "/snapshots/" + digits) == "org/base@2");
  CHECK(base.at(hub + "/snapshots/" + digits + "/config.json") == "org/base@2");
  CHECK(base.at(hub) == "org/base");
  CHECK(base.at(hub + "/refs") == "org/base");
  CHECK(base.at(hub + "/refs/main") == "org/base@latest");
  CHECK(base.at(hub + "/refs/1") == "org/base@1");
  CHECK(base.at(hub + "/refs/best") == "org/base@best");
  CHECK(base.at(hub + "/refs/none") == hub + "/refs/none");
  REQUIRE(base.store->set_tag("org/base", "main", 1).ok());
  CHECK(base.at(hub + "/refs/main") == "org/base@main");
  for (const std::string& none :
       {hub + "/snapshots/" + std::string(40, '0'), hub + "/snapshots/" + digits.substr(1), hub + "/snapshots/none",
        std::string("/mnt/weft/hub/models--no--such/snapshots/") + digits})
    CHECK(base.at(none) == none);
}

TEST_CASE("any other text stays as it is") {
  Base base;
  for (const char* text :
       {"org/base", "org/base@1", "models/org/base/1", "/mnt/weft", "/mnt/weft/", "/mnt/weft/.weft/status",
        "/mnt/weftmodels/org/base/1", "/data/models/org/base/1", "/mnt/weft/../x/models/org/base/1", "/", ""})
    CHECK(base.at(text) == text);
}

#include <doctest/doctest.h>

#include "fakes/node_fixture.h"

using weft::Errc;
using weft::testing::Fixture;
using weft::testing::write_file;

namespace {

std::string error_of(const Fixture& f, std::string_view spec) {
  auto row = f.resolve(spec);
  REQUIRE_FALSE(row.ok());
  CHECK(row.error().code == Errc::not_found);
  return row.error().message;
}

}  // namespace

TEST_CASE("versions are found by number, tag and latest") {
  Fixture f;
  CHECK(error_of(f, "m") == "no model m: the store is empty");
  for (int i = 1; i <= 4; ++i) {
    write_file(f.dir / "a", std::to_string(i));
    f.publish({f.dir / "a"}, "m");
  }
  REQUIRE(f.store->set_tag("m", "prod", 2).ok());
  CHECK(f.resolve("m")->number == 4);
  CHECK(f.resolve("m@latest")->number == 4);
  CHECK(f.resolve("m@3")->number == 3);
  CHECK(f.resolve("m@prod")->number == 2);
  CHECK(error_of(f, "m@7") == "m@7 is not there; there are 1 to 4, prod");
  CHECK(error_of(f, "m@nosuch") == "m@nosuch is not there; there are 1 to 4, prod");
  CHECK(error_of(f, "other") == "no model other; there are m");
  CHECK(f.resolve("../m").error().code == Errc::invalid);
  CHECK(f.resolve("m@18446744073709551616").error().code == Errc::invalid);
}

TEST_CASE("removed versions are not found, and the message says so") {
  Fixture f;
  for (int i = 1; i <= 3; ++i) {
    write_file(f.dir / "a", std::to_string(i));
    f.publish({f.dir / "a"}, "m");
  }
  REQUIRE(f.store->remove_version("m", 3).ok());
  CHECK(f.resolve("m")->number == 2);
  CHECK(error_of(f, "m@3") == "m@3 was removed; there are 1 to 2");
  REQUIRE(f.store->remove_version("m", 1).ok());
  REQUIRE(f.store->remove_version("m", 2).ok());
  CHECK(error_of(f, "m") == "all versions of m were removed");
}

TEST_CASE("a loaded version has the tree of its manifest, and its facts") {
  Fixture f;
  weft::testing::write_model(f.dir / "m", 1);
  f.publish({f.dir / "m"}, "m");
  auto row = f.resolve("m");
  REQUIRE(row.ok());
  auto loaded = weft::load_version(*f.store, weft::no_resolver(), *row);
  REQUIRE(loaded.ok());
  const weft::Manifest& manifest = loaded->tree->manifest();
  REQUIRE(manifest.files.size() == 3);
  CHECK(manifest.files[0].path == "1_Pooling/config.json");
  CHECK(manifest.files[1].extents.empty());
  CHECK(manifest.files[2].format == "safetensors");
  CHECK(manifest.files[2].tensors.size() == 3);

  auto content = weft::content_of(manifest);
  REQUIRE(content.ok());
  CHECK(content->files.size() == 3);
  CHECK(content->views.size() == 3);
  CHECK(content->tree_nodes == loaded->tree->size());
  CHECK(content->logical_bytes == row->logical_bytes);

  weft::VersionRow missing = *row;
  missing.manifest.bytes[0] ^= 1;
  auto none = weft::load_version(*f.store, weft::no_resolver(), missing);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.starts_with("m@1: "));
}

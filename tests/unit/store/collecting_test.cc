#include <doctest/doctest.h>

#include "parts_support.h"
#include "store/collecting/collector.h"
#include "store/collecting/manifest_packer.h"
#include "store/collecting/reaper.h"
#include "store/publishing/publisher.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Room : TestParts {
  void remove(std::string_view model, std::uint64_t number) {
    const VersionName name{std::string(model), number};
    must(remove_versions(*parts, {&name, 1}, Tagged::removed));
  }
};

}  // namespace

TEST_CASE("a reaper frees removed versions, except those that a reader has open") {
  Room room;
  must(publish(*room.parts, "m", {{1}}));
  must(publish(*room.parts, "m", {{2}}));
  const VersionId open = room.version("m", 1).id;
  const auto hold = must(room.parts->open_versions->hold(open));
  room.remove("m", 1);
  room.remove("m", 2);
  GcReport counted;
  must(reap(*room.parts, {.dry_run = true}, no_progress(), counted));
  CHECK(counted.versions_reaped == 1);
  GcReport report;
  must(reap(*room.parts, {}, no_progress(), report));
  CHECK(report.versions_reaped == 1);
  CHECK(report.versions_open == 1);
  CHECK(room.has_note(kUnreaped, open));
  CHECK_FALSE(room.has_note(kUnreaped, open + 1));
}

TEST_CASE("a packer moves many manifests into one pack") {
  Room room;
  for (unsigned n = 0; n < 20; ++n) must(publish(*room.parts, "m", {{n}}));
  CHECK(must(room.parts->manifests.list()).size() == 20);
  must(pack_manifests(*room.parts, no_progress()));
  CHECK(must(room.parts->manifests.list()).empty());
  for (unsigned n = 0; n < 20; ++n) CHECK(room.parts->contents.of(room.version("m", n + 1).manifest).ok());
}

TEST_CASE("a collector deletes the packs of removed versions") {
  Room room;
  must(publish(*room.parts, "m", {{1}}));
  must(publish(*room.parts, "m", {{2}}));
  room.remove("m", 1);
  const GcReport report = must(gc(*room.parts, {}, no_progress()));
  CHECK(report.versions_reaped == 1);
  CHECK(report.packs_deleted == 1);
  CHECK_FALSE(room.finds(1));
  CHECK(room.finds(2));
}

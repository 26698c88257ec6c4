#include "store/checking/checking.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "os/sys.h"
#include "parts_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

PackId pack_of(StoreParts& parts, unsigned content) {
  return must(must(parts.blobs.read())->find(content_id(content)))->pack;
}

}  // namespace

TEST_CASE("fsck names a missing pack, and a repair brings its blob back") {
  TestParts test;
  must(publish(*test.parts, "m", {{1}}));
  CHECK(must(fsck(*test.parts, {}, decode, no_progress())).problems.empty());
  std::filesystem::remove(pack_path(test.made.path, pack_of(*test.parts, 1)));
  const FsckReport report = must(fsck(*test.parts, {}, decode, no_progress()));
  REQUIRE(report.damaged.size() == 1);
  CHECK(report.damaged[0].id == content_id(1));

  TempDir dir;
  write_file(dir / "copy", as_text(content_bytes(1)));
  const Fd fd = must(open_file(dir / "copy", O_RDONLY));
  const auto repair = must(begin_repair(*test.parts));
  must(repair->add(content_id(1), fd.get(), 0, "copy", no_progress()));
  must(repair->commit());
  CHECK(must(fsck(*test.parts, {}, decode, no_progress())).damaged.empty());
}

TEST_CASE("a scrub reads every pack and records where it stopped") {
  TestParts test;
  must(publish(*test.parts, "m", {{1, 2}}));
  const ScrubReport report = must(scrub(*test.parts, {}, no_progress()));
  CHECK(report.complete);
  CHECK(report.problems == 0);
  CHECK(report.bytes == 2003);
}

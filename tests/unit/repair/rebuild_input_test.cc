#include "repair/rebuild_input.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace weft;

TEST_CASE("a rebuild reports damage and fails with any other error") {
  FsckReport report;
  CHECK(tell(report, {}, "packs").ok());
  CHECK(report.clean());
  for (const Errc damage : {Errc::corrupt, Errc::not_found})
    CHECK(tell(report, Error{damage, "is gone"}, "packs").ok());
  CHECK(report.problems == std::vector<std::string>{"packs: is gone", "packs: is gone"});
  for (const Errc other : {Errc::io, Errc::cancelled, Errc::unsupported})
    CHECK(tell(report, Error{other, "failed"}, "packs").error().code == other);
  CHECK(report.problems.size() == 2);
}

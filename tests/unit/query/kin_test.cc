#include "query/kin.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "fakes/node_fixture.h"

namespace weft::testing {
namespace {

// m@1 is the parent of m@2 and m@3.
struct Family : Fixture {
  Family() {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      write_model(dir / "source", seed);
      ImportOptions options;
      options.paths = {dir / "source"};
      options.name = "m";
      if (seed > 1) options.parents = {"m@1"};
      must(import_paths(*store, options, no_progress()));
    }
  }
  std::vector<std::uint64_t> kin(std::string_view spec, KinWay way) const {
    std::vector<std::uint64_t> numbers;
    for (const VersionRow& version : must(kin_of(*store, must(resolve(spec)), way)).versions)
      numbers.push_back(version.number);
    return numbers;
  }
};

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("the relatives of a version are found in one direction or in both, removed ones too") {
  const Family f;
  CHECK(f.kin("m@2", KinWay::ancestors) == Numbers{2, 1});
  CHECK(f.kin("m@1", KinWay::descendants) == Numbers{1, 2, 3});
  CHECK(f.kin("m@3", KinWay::both) == Numbers{3, 1, 2});
  must(f.store->remove_version("m", 2));
  CHECK(f.kin("m@1", KinWay::descendants) == Numbers{1, 2, 3});
  CHECK(must(gather_kin(*f.store, must(f.resolve("m@1")).id, KinWay::descendants, 1)).graph.left_out == 2);
}

}  // namespace weft::testing

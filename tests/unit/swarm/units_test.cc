#include "swarm/units.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "swarm/unit_set.h"

namespace weft::testing {
namespace {

// Each chunk belongs to the unit whose run holds it, and the runs follow each other.
void check_runs(const Units& units) {
  std::uint64_t next = 0;
  for (std::uint32_t unit = 0; unit < units.count(); ++unit) {
    REQUIRE(units.first_chunk(unit) == next);
    REQUIRE(units.chunks_in(unit) > 0);
    REQUIRE(units.unit_of(next) == unit);
    next += units.chunks_in(unit);
    REQUIRE(units.unit_of(next - 1) == unit);
  }
  CHECK(next == units.chunks());
}

}  // namespace

TEST_CASE("the units of a version are runs of its chunks, and at most 32,768") {
  struct Row {
    std::uint64_t chunks, chunks_per_unit;
    std::uint32_t count;
  };
  for (const Row row : {Row{0, 1, 0}, Row{1, 1, 1}, Row{32'767, 1, 32'767}, Row{32'768, 1, 32'768},
                        Row{32'769, 2, 16'385}, Row{65'536, 2, 32'768}, Row{65'537, 3, 21'846}}) {
    CAPTURE(row.chunks);
    const Units units(row.chunks);
    CHECK(units.chunks_per_unit() == row.chunks_per_unit);
    CHECK(units.count() == row.count);
    check_runs(units);
  }
}

TEST_CASE("the last unit has the chunks that are left") {
  const Units units(32'769);
  CHECK(units.chunks_in(0) == 2);
  CHECK(units.chunks_in(16'384) == 1);
}

TEST_CASE("the units of 300 GiB fit into 4 KiB of bits") {
  const Units units(std::uint64_t{300} * 1024);
  CHECK(units.chunks_per_unit() == 10);
  check_runs(units);
  CHECK(UnitSet::full(units.count()).encode().size() <= 4096);
  CHECK(UnitSet::full(Units(32'768).count()).encode().size() == 4096);
}

TEST_CASE("the numbers of chunks do not wrap") {
  const Units units(std::numeric_limits<std::uint64_t>::max());
  CHECK(units.count() <= kUnitsMax);
  const std::uint32_t last = units.count() - 1;
  CHECK(units.first_chunk(last) + units.chunks_in(last) == units.chunks());
}

}  // namespace weft::testing

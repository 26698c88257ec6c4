#include "packs/fresh_blobs.h"

#include "base/sha256.h"
#include "pack_fixture.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("the new blobs of an import are found by their content, however many there are") {
  TempDir dir;
  FreshBlobs fresh(safe(dir.path()), safe(dir.path()), false);
  const auto id = [](std::uint64_t n) { return ContentId{n % 3 + 1, sha256(as_bytes(std::to_string(n)))}; };
  CHECK_FALSE(fresh.find(id(0)));
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    CHECK_FALSE(fresh.find(id(n)));
    CHECK(fresh.claim(id(n), n, n % 2 == 0) == n);
    CHECK(fresh.find(id(n)) == n);
  }
  for (std::uint64_t n = 0; n < 10'000; ++n) CHECK(fresh.find(id(n)) == n);
  CHECK_FALSE(fresh.find(id(10'000)));
  CHECK(fresh.find_hinted(id(77).length, 77) == 77);
  CHECK(fresh.all().size() == 10'000);

  // A second claim of the same content makes another blob. find() returns the first one.
  CHECK(fresh.claim(id(5), 0, false) == 10'000);
  CHECK(fresh.find(id(5)) == 5);
}

#include "catalog/layout.h"

#include <doctest/doctest.h>

#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("network file systems are refused by name") {
  CHECK(unsuitable_file_system(0x6969) == "nfs");
  CHECK(unsuitable_file_system(0xFF534D42) == "cifs");
  CHECK(unsuitable_file_system(0xFFFFFFFFFF534D42) == "cifs");  // sign-extended, as statfs() returns it
  CHECK(unsuitable_file_system(0x0BD00BD0) == "lustre");
  CHECK(unsuitable_file_system(0x65735546) == "fuse");
  for (unsigned long local :
       {0xEF53UL, 0x58465342UL, 0x9123683EUL, 0x01021994UL, 0x794C7630UL, 0x2FC12FC1UL, 0xF2F52010UL})
    CHECK_FALSE(unsuitable_file_system(local));
  CHECK(check_file_system(must(SafePath::open_owned("/proc"))).ok());
}

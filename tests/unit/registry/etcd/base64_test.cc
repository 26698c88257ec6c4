#include "registry/etcd/base64.h"

#include <doctest/doctest.h>

#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("base64: encoding is reversible, and other text is refused") {
  for (std::size_t size : {0, 1, 2, 3, 4, 255, 1000}) {
    auto bytes = random_bytes(size, size + 1);
    CHECK(from_base64(to_base64(bytes)).value() == bytes);
  }
  CHECK(to_base64(as_bytes("foob")) == "Zm9vYg==");
  CHECK(to_base64(as_bytes("fooba")) == "Zm9vYmE=");
  for (const char* bad : {"Zm9", "Zm9vYh==", "Zm9v\n", "Zm9vYg=a", "=Zm9", "Zm-v", "====", "Zm9vYg==Zm9v"})
    CHECK_FALSE(from_base64(bad).has_value());
}

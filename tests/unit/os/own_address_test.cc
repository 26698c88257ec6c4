#include "os/lookups/own_address.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

TEST_CASE("an address of this machine is accepted, and any other is named in one short line") {
  CHECK(check_own_address("127.0.0.1", 0).ok());
  CHECK(check_own_address("localhost", 0).ok());
  const Status foreign = check_own_address("192.0.2.1", 0);  // of no network: RFC 5737
  REQUIRE(!foreign.ok());
  CHECK(foreign.error().code == Errc::invalid);
  CHECK(foreign.error().message == "no interface of this machine has the address 192.0.2.1");
  const Status unknown = check_own_address("no host", 0);
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().message.find("no host") != std::string::npos);
}

}  // namespace
}  // namespace weft

#include "os/read_within.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "testing.h"

using namespace weft;
using namespace weft::testing;
using std::chrono::milliseconds;

TEST_CASE("a file is read as far as it is wanted") {
  TempDir dir;
  const std::string text(10'000, 'x');
  write_file(dir / "file", text);
  CHECK(read_file_within(dir / "file", 1U << 20U, milliseconds(60'000)).value() == text);
  CHECK(read_file_within(dir / "file", 5000, milliseconds(60'000)).value() == text.substr(0, 5000));
}

TEST_CASE("a missing file is an error") {
  TempDir dir;
  auto text = read_file_within(dir / "none", 10, milliseconds(60'000));
  REQUIRE_FALSE(text.ok());
  CHECK(text.error().code == Errc::io);
}

TEST_CASE("a read of a hanging file ends after its limit") {
  TempDir dir;
  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);  // no process ever writes to it
  auto text = read_file_within(dir / "fifo", 10, milliseconds(20));
  REQUIRE_FALSE(text.ok());
  CHECK(text.error().code == Errc::busy);
}

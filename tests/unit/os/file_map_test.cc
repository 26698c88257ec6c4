#include "os/file_map.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "os/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("a file is mapped once, and has its bytes") {
  const TempDir dir;
  write_file(dir / "file", "0123456789");
  const Fd fd = must(open_file(dir / "file", O_RDONLY));
  const FileMap map(fd.get(), 10);
  REQUIRE(map.bytes() != nullptr);
  CHECK(map.bytes() == map.bytes());
  CHECK(as_text({map.bytes(), 10}) == "0123456789");
  CHECK(make_present(map.bytes() + 3, 7));
}

TEST_CASE("a failed mapping is null") {
  const TempDir dir;
  write_file(dir / "file", "");
  const Fd fd = must(open_file(dir / "file", O_RDONLY));
  CHECK(FileMap(fd.get(), 0).bytes() == nullptr);
  CHECK(FileMap(-1, 10).bytes() == nullptr);
}

TEST_CASE("pages that a file lost are no signal to who makes them present or hands them on") {
  const TempDir dir;
  write_file(dir / "file", std::string(20'000, 'x'));
  const Fd fd = must(open_file(dir / "file", O_RDWR));
  const Fd sink = must(open_file(dir / "sink", O_RDWR | O_CREAT));
  const FileMap map(fd.get(), 20'000);
  REQUIRE(map.bytes() != nullptr);
  CHECK(make_present(map.bytes(), 20'000));
  REQUIRE(::ftruncate(fd.get(), 5'000) == 0);
  CHECK(make_present(map.bytes(), 5'000));
  CHECK_FALSE(make_present(map.bytes(), 20'000));
  CHECK(::pwrite(sink.get(), map.bytes() + 12'288, 4096, 0) == -1);
}

#include "fuse/process/mountpoint.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "testing.h"

namespace weft {
namespace {

std::string name_of(int descriptor) {
  return fmt::format("/dev/fd/{}", descriptor);
}

std::string refusal(const std::string& mount_point) {
  const auto taken = take_descriptor(mount_point);
  REQUIRE_FALSE(taken.ok());
  CHECK(taken.error().code == Errc::invalid);
  CHECK(taken.error().message.starts_with("mount point " + mount_point + ": "));
  return taken.error().message;
}

}  // namespace

TEST_CASE("a passed descriptor has a number") {
  for (const char* const name : {"/dev/fd/", "/dev/fd/x", "/dev/fd/-1", "/dev/fd/07", "/dev/fd/3/", "/dev/fd/3/4",
                                 "/dev/fd/2147483648", "/dev/fd/99999999999999999999"})
    CHECK(refusal(name).find("expected /dev/fd/N") != std::string::npos);
}

TEST_CASE("a passed descriptor is open, and of /dev/fuse") {
  const testing::TempDir dir;
  testing::write_file(dir / "file", "content");
  for (const std::string& path : {std::string("/dev/null"), dir / "file", dir.path()}) {
    const Fd other = testing::must(open_file(path, O_RDONLY));
    CHECK(refusal(name_of(other.get())).find("is not of /dev/fuse") != std::string::npos);
    CHECK(::fcntl(other.get(), F_GETFD) >= 0);  // a refused descriptor stays open
  }
  Fd closed = testing::must(open_file("/dev/null", O_RDWR));
  const std::string name = name_of(closed.get());
  closed.reset();
  CHECK(refusal(name).find("is not open;") != std::string::npos);
}

TEST_CASE("a descriptor of /dev/fuse is taken over") {
  Fd fuse = open_fuse_device().ok() ? testing::must(open_fuse_device()) : Fd();
  if (!fuse.valid()) return;  // this user may not open it
  const Fd reading = testing::must(open_file("/dev/fuse", O_RDONLY));
  CHECK(refusal(name_of(reading.get())).find("is not open for reading and writing") != std::string::npos);
  const int number = fuse.release();
  const auto taken = take_descriptor(name_of(number));
  REQUIRE(taken.ok());
  CHECK(taken->get() > 2);
  CHECK((::fcntl(taken->get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(::fcntl(number, F_GETFD) < 0);
}

}  // namespace weft

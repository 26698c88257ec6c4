#include "cli/shared/mounts.h"

#include <doctest/doctest.h>

#include <atomic>
#include <sstream>

#include "os/programs.h"
#include "run.h"
#include "testing.h"

using weft::testing::Cli;
using weft::testing::TempDir;

TEST_CASE("weft mounts are found in mountinfo, whatever their names") {
  auto mounts = weft::parse_mountinfo(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "30 22 0:40 / /mnt/my\\040models rw,nosuid shared:2 master:1 - fuse.weft /srv/we\\134ft rw,user_id=0\n"
      "31 22 0:41 / /mnt/other rw - fuse.sshfs host: rw\n"
      "torn line - \n"
      "\n");
  REQUIRE(mounts.size() == 1);
  CHECK(mounts[0].directory == "/mnt/my models");
  CHECK(mounts[0].store == "/srv/we\\ft");
}

TEST_CASE("the path of a mount point") {
  TempDir dir;
  CHECK(*weft::mount_point_path(dir.path() + "/") == *weft::mount_point_path(dir.path()));
  CHECK(weft::mount_point_path(dir / "none").error().code == weft::Errc::not_found);
}

TEST_CASE("a program is looked for beside weft first, then along PATH") {
  TempDir dir;
  std::atomic<int> interrupt = 0;
  std::ostringstream stream;
  weft::CliEnvironment environment{.out = stream,
                                   .err = stream,
                                   .variable = [](const std::string&) { return std::optional<std::string>("/bin"); },
                                   .program = dir / "weft",
                                   .interrupt = interrupt};
  CHECK(weft::find_program(environment, "sh") == "/bin/sh");
  CHECK_FALSE(weft::find_program(environment, "no-such-program-at-all"));
  REQUIRE(*weft::run_program("/bin/cp", {"cp", "/bin/true", dir / "sh"}) == 0);
  CHECK(weft::find_program(environment, "sh") == dir / "sh");
}

TEST_CASE("umount refuses what is no weft mount") {
  TempDir dir;
  auto outcome = Cli()({"umount", dir.path()});
  CHECK(outcome.code == 1);
  CHECK(outcome.err == "weft: " + dir.path() + ": no weft file system is mounted here\n");
  CHECK(Cli()({"umount", dir / "none"}).err.find("No such file") != std::string::npos);
}

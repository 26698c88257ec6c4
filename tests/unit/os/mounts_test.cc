#include "os/mounts.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "os/mount_users.h"
#include "testing.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kStatus =
    R"({"weft": "1", "store": {"pid": 3}, "mount": {"pid": 7, "supervisor_pid": 8, "pid_namespace": 9,)"
    R"( "control": "0a1", "mode": "cached", "more": {"pid": 4}}})";

}  // namespace

TEST_CASE("the last mount on a directory is the one that shows") {
  const auto mounts = parse_mountinfo(
      "30 22 0:40 / /mnt rw - fuse.weft /a rw\n"
      "31 22 0:41 / /mnt rw - fuse.weft /b rw\n"
      "32 22 0:42 / /other rw - fuse.weft /c rw\n");
  REQUIRE(top_mount(mounts, "/mnt").has_value());
  CHECK(top_mount(mounts, "/mnt")->store == "/b");
  CHECK(top_mount(mounts, "/mnt")->device == "0:41");
  CHECK(top_mount(mounts, "/mnt")->id == 31);
  CHECK_FALSE(top_mount(mounts, "/mn").has_value());
}

TEST_CASE("the mount of a descriptor is found by its device number") {
  CHECK(parse_fdinfo("pos:\t0\nflags:\t02104002\nmnt_id:\t58\nino:\t90\nfuse_connection:\t39\n") == "0:39");
  CHECK(parse_fdinfo("fuse_connection:\t8388609\n") == "8:1");
  for (const char* const text : {"", "pos:\t0\nino:\t90\n", "fuse_connection:\n", "fuse_connection:\tx\n"})
    CHECK(parse_fdinfo(text).empty());
  constexpr std::string_view kMounts =
      "30 22 0:39 /models /bound rw - fuse /a rw\n"
      "31 22 0:39 / /mnt\\040point rw - fuse.other /a rw\n"
      "32 22 0:39 / /again rw - fuse.other /a rw\n";
  CHECK(parse_directory(kMounts, "0:39") == "/mnt point");
  CHECK(parse_directory(kMounts, "0:3").empty());
  CHECK(parse_directory(kMounts, "").empty());
}

TEST_CASE("a mount point that names a descriptor") {
  CHECK(names_descriptor("/dev/fd/5"));
  CHECK(names_descriptor("/dev/fd/x"));
  for (const char* const path : {"/dev/fd", "/dev/fdx/5", "dev/fd/5", "/mnt/dev/fd/5", ""})
    CHECK_FALSE(names_descriptor(path));
}

TEST_CASE("a directory is opened from the kernel's cache of names") {
  const testing::TempDir dir;
  const struct stat st = testing::must(stat_file(dir.path()));
  const std::string device = fmt::format("{}:{}", major(st.st_dev), minor(st.st_dev));
  const auto opened = open_cached(dir.path(), device);
  REQUIRE(opened.ok());
  CHECK(testing::must(stat_fd(opened->get(), "cached")).st_ino == st.st_ino);
  CHECK(open_cached(dir.path(), "0:0").error().os_error == EXDEV);
  CHECK_FALSE(open_cached(dir / "absent", device).ok());
}

TEST_CASE("the users of a mount are named in one line") {
  CHECK(describe_users({}).empty());
  CHECK(describe_users({{7, "python3"}}) == "python3 (pid 7)");
  CHECK(describe_users({{7, "a\x1b\n"}, {9, "b"}}) == printable("a\x1b\n") + " (pid 7), b (pid 9)");
  CHECK(describe_users(std::vector<MountUser>(5, {1, "a"})).ends_with("a (pid 1), a (pid 1)"));
  CHECK(describe_users(std::vector<MountUser>(7, {1, "a"})).ends_with("a (pid 1) and 2 more"));
}

TEST_CASE("mount_processes() reads the process ids of a mount's status") {
  const auto processes = mount_processes(kStatus);
  REQUIRE(processes.ok());
  CHECK(processes->server_pid == 7);
  CHECK(processes->supervisor_pid == 8);
  CHECK(processes->pid_namespace == 9);
  CHECK(processes->control == "0a1");
  CHECK(status_members(kStatus, "mount")->size() == 5);
  CHECK(mount_processes(R"({"mount": {"pid": 7}})")->supervisor_pid == 0);
  CHECK_FALSE(mount_processes("{").ok());
}

TEST_CASE("a mount's status is read as a file") {
  const testing::TempDir dir;
  CHECK(read_mount_status(dir.path(), milliseconds(2000)).error().code == Errc::io);
  testing::write_file(dir / ".weft/status", kStatus);
  CHECK(*read_mount_status(dir.path(), milliseconds(2000)) == kStatus);
}

TEST_CASE("the ends of processes are waited for, within bounds") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto ends = watch_processes({static_cast<std::uint64_t>(child), 0, pid_namespace(), ""});
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(wait_for_ends(ends, milliseconds(0)));
  ::kill(child, SIGKILL);
  CHECK(wait_for_ends(ends, milliseconds(10'000)));
  ::waitpid(child, nullptr, 0);
  CHECK(watch_processes({static_cast<std::uint64_t>(child), 0, pid_namespace(), ""}).empty());
  CHECK(watch_processes({static_cast<std::uint64_t>(::getpid()), 0, pid_namespace() + 1, ""}).empty());
}

}  // namespace weft

#include "base/beneath.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "testing.h"

using weft::Beneath;
using weft::Errc;
using weft::testing::read_text;
using weft::testing::TempDir;
using weft::testing::write_file;

namespace fs = std::filesystem;

namespace {

struct World {
  World() {
    write_file(dir / "outside/secret", "root's");
    write_file(dir / "in/sub/file", "ours");
    auto opened = Beneath::open(dir / "in");
    REQUIRE(opened.ok());
    in = std::move(opened).value();
  }
  weft::Inode inode(const Beneath& at, const std::string& name) const {
    auto st = at.stat(name);
    REQUIRE(st.ok());
    return weft::inode_of(*st);
  }

  TempDir dir;
  Beneath in;
};

}  // namespace

TEST_CASE("a path below a directory follows no link and does not lead out") {
  World w;
  fs::create_directory_symlink(w.dir / "outside", w.dir / "in/way");
  fs::create_symlink("sub/file", w.dir / "in/name");
  CHECK(w.in.open_file("sub/file", O_RDONLY).ok());
  CHECK(w.in.directory("sub").ok());
  for (const char* path : {"way/secret", "name", "sub/../way/secret"}) {
    auto opened = w.in.open_file(path, O_RDONLY);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().message == (w.dir / "in/") + path + ": expected no symbolic link in this path");
  }
  CHECK(w.in.directory("way").error().code == Errc::invalid);
  CHECK(w.in.open_file("../outside/secret", O_RDONLY).error().code == Errc::invalid);
  CHECK(w.in.open_file(w.dir / "outside/secret", O_RDONLY).error().code == Errc::invalid);
  CHECK(w.in.open_file("none", O_RDONLY).error().code == Errc::not_found);
  CHECK(w.in.open_file("name", O_WRONLY | O_CREAT | O_EXCL, 0644).error().code == Errc::exists);
  CHECK_FALSE(w.in.open_file("way/new", O_WRONLY | O_CREAT | O_EXCL, 0644).ok());
  CHECK_FALSE(fs::exists(w.dir / "outside/new"));
}

TEST_CASE("only regular files are opened, and others are left as they are") {
  World w;
  REQUIRE(::mkfifo((w.dir / "in/fifo").c_str(), 0644) == 0);
  CHECK(w.in.open_file("fifo", O_RDONLY).error().message == (w.dir / "in/fifo: expected a regular file"));
  CHECK_FALSE(w.in.open_file("sub", O_RDONLY).ok());
  CHECK(w.in.open_file("sub/file", O_WRONLY | O_TRUNC).ok());
  CHECK(read_text(w.dir / "in/sub/file").empty());
}

TEST_CASE("a directory that was swapped for a link is still the one that was opened") {
  World w;
  auto sub = w.in.directory("sub");
  REQUIRE(sub.ok());
  fs::rename(w.dir / "in/sub", w.dir / "in/aside");
  fs::create_directory_symlink(w.dir / "outside", w.dir / "in/sub");
  CHECK(sub->open_file("new", O_WRONLY | O_CREAT | O_EXCL, 0600).ok());
  CHECK(fs::exists(w.dir / "in/aside/new"));
  CHECK(sub->list().value() == std::vector<std::string>{"file", "new"});
  CHECK_FALSE(w.in.directory("sub").ok());
}

TEST_CASE("only the inode that is meant is removed") {
  World w;
  auto sub = std::move(w.in.directory("sub")).value();
  const auto file = w.inode(sub, "file");
  const auto directory = w.inode(w.in, "sub");
  fs::rename(w.dir / "in/sub/file", w.dir / "in/sub/other");
  write_file(w.dir / "in/sub/file", "another's");
  CHECK(sub.remove("file", file).ok());
  CHECK(read_text(w.dir / "in/sub/file") == "another's");
  CHECK(sub.remove("other", file).ok());
  CHECK_FALSE(fs::exists(w.dir / "in/sub/other"));
  CHECK(sub.remove("other", file).ok());  // gone already
  CHECK(w.in.remove("sub", directory).error().code == Errc::exists);
  fs::remove(w.dir / "in/sub/file");
  CHECK(w.in.remove("sub", directory).ok());
  CHECK_FALSE(fs::exists(w.dir / "in/sub"));
}

TEST_CASE("a move into another directory replaces nothing") {
  World w;
  auto sub = std::move(w.in.directory("sub")).value();
  write_file(w.dir / "in/file", "another's");
  CHECK(sub.rename_new("file", w.in, "file").error().code == Errc::exists);
  fs::remove(w.dir / "in/file");
  CHECK(sub.rename_new("file", w.in, "file").ok());
  CHECK(read_text(w.dir / "in/file") == "ours");
}

#include "os/beneath.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "os/open_beneath.h"
#include "os/safe_path.h"
#include "testing.h"

using weft::Beneath;
using weft::Errc;
using weft::Fd;
using weft::Resolve;
using weft::testing::must;
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

TEST_CASE("the caller chooses which links of a path are followed, and none leads outside") {
  World w;
  fs::create_symlink("sub/file", w.dir / "in/name");
  fs::create_symlink("../outside/secret", w.dir / "in/out");
  const Fd directory = must(w.in.open_directory("."));
  const auto open = [&](const char* path, int flags, Resolve resolve) {
    const auto fd = weft::open_beneath(directory.get(), path, flags, 0, resolve);
    return fd.ok() ? 0 : -fd.error().os_error;
  };
  for (const Resolve resolve : {Resolve::no_links, Resolve::no_links_no_mounts}) {
    CHECK(open("sub/file", O_RDONLY, resolve) == 0);
    CHECK(open("name", O_RDONLY, resolve) == -ELOOP);
    CHECK(open("name", O_PATH | O_NOFOLLOW, resolve) == 0);  // opens the link itself
  }
  CHECK(open("name", O_RDONLY, Resolve::links_within) == 0);
  for (const Resolve resolve : {Resolve::no_links, Resolve::no_links_no_mounts, Resolve::links_within}) {
    CHECK(open("out", O_RDONLY, resolve) < 0);
    CHECK(open("../outside/secret", O_RDONLY, resolve) == -EXDEV);
    CHECK(open("none", O_RDONLY, resolve) == -ENOENT);
  }
}

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

TEST_CASE("an open directory stays the same if its name is replaced by a link") {
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
  CHECK(sub.remove("other", file).ok());  // it is already gone
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

TEST_CASE("calls on a path of several components follow no link on the way") {
  World w;
  fs::create_directories(w.dir / "outside/a");
  write_file(w.dir / "outside/a/file", "root's");
  fs::create_directory_symlink(w.dir / "outside/a", w.dir / "in/way");
  CHECK_FALSE(w.in.stat("way/file").ok());
  CHECK_FALSE(w.in.read_file("way/file", 100).ok());
  CHECK_FALSE(w.in.list("way").ok());
  CHECK_FALSE(w.in.sync("way").ok());
  CHECK_FALSE(w.in.make_directory("way/new", 0755).ok());
  CHECK_FALSE(w.in.open_file("way/new", O_WRONLY | O_CREAT).ok());
  CHECK_FALSE(w.in.unlink("way/file").ok());
  CHECK_FALSE(w.in.remove_tree("way/file").ok());
  CHECK_FALSE(w.in.rename("sub/file", w.in, "way/new").ok());
  CHECK_FALSE(w.in.rename("way/file", w.in, "sub/new").ok());
  CHECK_FALSE(w.in.link("way/file", w.in, "sub/new").ok());
  CHECK(read_text(w.dir / "outside/a/file") == "root's");
  CHECK(fs::directory_iterator(w.dir / "outside/a") != fs::directory_iterator());
  CHECK_FALSE(fs::exists(w.dir / "outside/a/new"));
}

TEST_CASE("files below a directory are made, renamed, linked and removed") {
  World w;
  CHECK(w.in.open_file("sub/new", O_WRONLY | O_CREAT).ok());
  CHECK(w.in.open_file("sub/new", O_WRONLY | O_CREAT).ok());  // opens the existing file
  CHECK(w.in.make_directory("sub/deep", 0755).ok());
  CHECK(w.in.make_directory("sub/deep", 0755).error().code == Errc::exists);
  CHECK(w.in.rename("sub/file", w.in, "sub/new").ok());
  CHECK(w.in.rename_new("sub/new", w.in, "sub/deep/file").ok());
  CHECK(w.in.link("sub/deep/file", w.in, "sub/other").ok());
  CHECK(w.in.link("sub/deep/file", w.in, "sub/other").error().code == Errc::exists);
  CHECK(w.in.list("sub").value() == std::vector<std::string>{"deep", "other"});
  const auto bytes = w.in.read_file("sub/other", 4).value();
  CHECK(weft::testing::as_text(bytes) == "ours");
  CHECK(w.in.read_file("sub/other", 3).error().code == Errc::invalid);
  CHECK(w.in.unlink("sub/other").ok());
  CHECK(w.in.unlink("sub/other").ok());
  CHECK(w.in.unlink("none/other").ok());
  CHECK(w.in.remove_tree("sub").ok());
  CHECK(w.in.remove_tree("sub").ok());
  CHECK(w.in.list().value().empty());
}

TEST_CASE("remove_tree() removes a link and keeps its target") {
  World w;
  fs::create_directory_symlink(w.dir / "outside", w.dir / "in/sub/way");
  CHECK(w.in.remove_tree("sub").ok());
  CHECK(read_text(w.dir / "outside/secret") == "root's");
}

TEST_CASE("a truncating open of a link or of another owner's file changes nothing") {
  World w;
  fs::create_hard_link(w.dir / "outside/secret", w.dir / "in/hard");
  fs::create_symlink(w.dir / "outside/secret", w.dir / "in/soft");
  CHECK(w.in.open_file("soft", O_WRONLY | O_CREAT | O_TRUNC).error().code == Errc::invalid);
  if (::geteuid() == 0) {
    REQUIRE(::chown((w.dir / "in").c_str(), 65534, 65534) == 0);
    const auto owned = std::move(Beneath::open_owned(w.dir / "in")).value();
    auto opened = owned.open_file("hard", O_WRONLY | O_CREAT | O_TRUNC);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == Errc::corrupt);
    CHECK(opened.error().message ==
          (w.dir / "in/hard") + ": expected a file of user 65534, as its directory is, got one of user 0");
  }
  CHECK(read_text(w.dir / "outside/secret") == "root's");
}

TEST_CASE("files that root makes below another user's directory belong to that user") {
  if (::geteuid() != 0) return;
  World w;
  REQUIRE(::chown((w.dir / "in").c_str(), 65534, 65533) == 0);
  const auto owned = std::move(Beneath::open_owned(w.dir / "in")).value();
  CHECK(owned.make_directory("made", 0700).ok());
  CHECK(owned.open_file("made/file", O_WRONLY | O_CREAT, 0600).ok());
  for (const char* name : {"made", "made/file"}) {
    const auto st = owned.stat(name).value();
    CHECK(st.st_uid == 65534);
    CHECK(st.st_gid == 65533);
  }
}

TEST_CASE("a path is a value that names its file in full") {
  World w;
  const weft::SafePath in(std::move(Beneath::open(w.dir / "in")).value());
  const weft::SafePath file = in / "sub" / "file";
  CHECK(file.str() == w.dir / "in/sub/file");
  CHECK(fmt::format("{}", file + ".new") == (w.dir / "in/sub/file") + ".new");
  CHECK(file.parent().str() == w.dir / "in/sub");
  CHECK(in.relative() == ".");
  CHECK(file.relative() == "sub/file");
  const weft::SafePath held = file.parent().held() / "file";
  CHECK(held.relative() == "file");
  CHECK(held.str() == file.str());
  CHECK(weft::rename_file(file, file.parent().held() / "renamed").ok());
  CHECK(read_text(w.dir / "in/sub/renamed") == "ours");
}

TEST_CASE("a tree is removed however deep it is") {
  const TempDir dir;
  constexpr int kDeep = 60'000;
  const Fd home = must(weft::open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < kDeep; ++i) {  // from the innermost directory outwards
    REQUIRE(::mkdirat(home.get(), "next", 0700) == 0);
    if (i > 0) REQUIRE(::renameat(home.get(), "top", home.get(), "next/inner") == 0);
    REQUIRE(::renameat(home.get(), "next", home.get(), "top") == 0);
  }
  CHECK(weft::remove_tree(dir.path() + "/top").ok());
  CHECK(::faccessat(home.get(), "top", F_OK, 0) != 0);
}

#include "publish/gather.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "os/sys.h"
#include "publish/gather_rules.h"
#include "testing.h"

using weft::Errc;
using weft::gather_sources;
using weft::testing::must;
using weft::testing::TempDir;
using weft::testing::write_file;

namespace {

constexpr const char* kNoStore = "/nonexistent";

std::vector<std::string> paths_of(const std::vector<weft::SourceFile>& sources) {
  std::vector<std::string> paths;
  for (const auto& source : sources) paths.push_back(source.path);
  return paths;
}

weft::Result<std::vector<weft::SourceFile>> gather(const std::vector<std::string>& paths) {
  return gather_sources(paths, kNoStore);
}

void refuse(const std::vector<std::string>& paths, Errc code, const std::string& part) {
  auto sources = gather(paths);
  REQUIRE_FALSE(sources.ok());
  CHECK(sources.error().code == code);
  CAPTURE(sources.error().message);
  CHECK(sources.error().message.find(part) != std::string::npos);
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("a directory gives its contents whole, a file its base name, sorted") {
  TempDir dir;
  write_file(dir / "m/model.safetensors", "123");
  write_file(dir / "m/1_Pooling/config.json", "{}");
  write_file(dir / "extra/README.md", "hi");
  auto sources = gather({dir / "m/", dir / "extra/README.md"});
  REQUIRE(sources.ok());
  CHECK(paths_of(*sources) == Paths{"1_Pooling/config.json", "README.md", "model.safetensors"});
  CHECK((*sources)[2].size == 3);
  CHECK((*sources)[2].where == dir / "m/model.safetensors");
}

TEST_CASE("a directory without published entries is a source") {
  TempDir dir;
  write_file(dir / "m/a/file", "1");
  write_file(dir / "m/repository/.git/config", "1");
  std::filesystem::create_directories(dir / "m/a/empty");
  std::filesystem::create_directories(dir / "m/deep/er");
  std::filesystem::create_directories(dir / "more/deep/er");
  std::filesystem::create_directories(dir / "more/repository");
  write_file(dir / "other/deep/er/file", "1");
  const auto directories = [](const auto& sources) {
    Paths paths;
    for (const auto& source : sources)
      if (source.directory) paths.push_back(source.path);
    return paths;
  };
  const auto one = must(gather({dir / "m"}));
  CHECK(paths_of(one) == Paths{"a/empty", "a/file", "deep/er", "repository"});
  CHECK(directories(one) == Paths{"a/empty", "deep/er", "repository"});
  CHECK(directories(must(gather({dir / "m", dir / "more"}))) == Paths{"a/empty", "deep/er", "repository"});
  CHECK(directories(must(gather({dir / "m", dir / "other"}))) == Paths{"a/empty", "repository"});
  refuse({dir / "more"}, Errc::invalid, "no file to publish");
  write_file(dir / "file/repository", "1");
  refuse({dir / "m", dir / "file"}, Errc::invalid, "both would be repository");
}

TEST_CASE("repositories and download caches are left out") {
  TempDir dir;
  write_file(dir / "m/a", "1");
  write_file(dir / "m/.git/HEAD", "1");
  write_file(dir / "m/.cache/huggingface/x.lock", "1");
  write_file(dir / "m/.cache/kept", "1");
  write_file(dir / "m/.gitattributes", "1");
  write_file(dir / "m/sub/.git/HEAD", "1");
  weft::LinkRule rule;
  const auto sources = must(gather_sources(Paths{dir / "m"}, kNoStore, rule));
  CHECK(paths_of(sources) == Paths{".cache/kept", ".gitattributes", "a", "sub"});
  std::ranges::sort(rule.skipped);
  CHECK(rule.skipped == Paths{dir / "m/.cache/huggingface: left out: it is a directory of huggingface_hub",
                              dir / "m/.git: left out: it is a directory of git",
                              dir / "m/sub/.git: left out: it is a directory of git"});
}

TEST_CASE("links to regular files are followed, also where PATH is a link to a directory") {
  TempDir dir;
  write_file(dir / "blobs/0", "weights");
  REQUIRE(weft::make_directory(dir / "snapshot").ok());
  std::filesystem::create_symlink("../blobs/0", dir / "snapshot/model.safetensors");
  std::filesystem::create_symlink("snapshot", dir / "link");
  auto sources = gather({dir / "link"});
  REQUIRE(sources.ok());
  CHECK(paths_of(*sources) == Paths{"model.safetensors"});
  CHECK((*sources)[0].size == 7);
}

TEST_CASE("links to directories and dangling links are skipped or followed if the rule says so") {
  TempDir dir;
  write_file(dir / "m/a", "1");
  write_file(dir / "other/b", "1");
  write_file(dir / "other/in/c", "1");
  std::filesystem::create_symlink("../other", dir / "m/sub");
  std::filesystem::create_symlink("in", dir / "other/again");
  SUBCASE("skip") {
    std::filesystem::create_symlink("nowhere", dir / "m/gone");
    weft::LinkRule rule{.links = weft::Links::skip};
    CHECK(paths_of(*gather_sources(Paths{dir / "m"}, kNoStore, rule)) == Paths{"a"});
    REQUIRE(rule.skipped.size() == 2);
    CHECK(rule.skipped[0] == dir / "m/gone: left out: it is a link that leads nowhere");
    CHECK(rule.skipped[1] == dir / "m/sub: left out: it is a link to a directory");
    std::filesystem::create_symlink("loop", dir / "m/loop");
    std::filesystem::create_symlink("a/b", dir / "m/under");
    CHECK(paths_of(*gather_sources(Paths{dir / "m"}, kNoStore, rule)) == Paths{"a"});
  }
  SUBCASE("follow") {
    weft::LinkRule rule{.links = weft::Links::follow};
    const auto sources = gather_sources(Paths{dir / "m"}, kNoStore, rule);
    REQUIRE(sources.ok());
    CHECK(paths_of(*sources) == Paths{"a", "sub/again/c", "sub/b", "sub/in/c"});
    CHECK(rule.skipped.empty());
  }
  SUBCASE("directories without published entries are empty, also behind a link") {
    std::filesystem::create_directory(dir / "other/empty");
    std::filesystem::create_symlink("../other/empty", dir / "m/bare");
    weft::LinkRule rule{.links = weft::Links::follow};
    const auto followed = must(gather_sources(Paths{dir / "m"}, kNoStore, rule));
    CHECK(paths_of(followed) == Paths{"a", "bare", "sub/again/c", "sub/b", "sub/empty", "sub/in/c"});
    CHECK(followed[1].directory);
    CHECK(followed[4].directory);
    std::filesystem::create_directory(dir / "m/only");
    std::filesystem::create_symlink("../../other", dir / "m/only/link");
    rule.links = weft::Links::skip;
    const auto skipped = must(gather_sources(Paths{dir / "m"}, kNoStore, rule));
    CHECK(paths_of(skipped) == Paths{"a", "only"});
    CHECK(skipped[1].directory);
  }
  SUBCASE("a link that leads upwards ends") {
    std::filesystem::create_symlink(".", dir / "m/self");
    weft::LinkRule rule{.links = weft::Links::follow};
    CHECK(gather_sources(Paths{dir / "m"}, kNoStore, rule).error().code == Errc::invalid);
  }
  SUBCASE("follow refuses a link that leads nowhere, and skip one to a device") {
    std::filesystem::create_symlink("nowhere", dir / "m/gone");
    weft::LinkRule rule{.links = weft::Links::follow};
    CHECK(gather_sources(Paths{dir / "m"}, kNoStore, rule).error().code == Errc::not_found);
    std::filesystem::create_symlink("/dev/zero", dir / "other/zero");
    rule.links = weft::Links::skip;
    CHECK(gather_sources(Paths{dir / "other"}, kNoStore, rule).error().code == Errc::invalid);
  }
}

TEST_CASE("a link whose target cannot be examined is no link that leads nowhere") {
  weft::LinkRule rule{.links = weft::Links::skip};
  weft::TreeEntry entry{.directory = -1, .name = "link", .path = "link"};  // fstatat(2) fails with EBADF
  entry.st.st_mode = S_IFLNK;
  const auto st = weft::stat_published(entry, "m/link", "link", rule);
  REQUIRE_FALSE(st.ok());
  CHECK(st.error().code == Errc::io);
  CHECK(st.error().message.starts_with("m/link: "));
  CHECK(rule.skipped.empty());
}

TEST_CASE("a source that is neither file nor directory is refused by name") {
  TempDir dir;
  write_file(dir / "m/a", "1");
  write_file(dir / "other/b", "1");
  SUBCASE("link to a directory") {
    std::filesystem::create_symlink("../other", dir / "m/sub");
    refuse({dir / "m"}, Errc::invalid, "m/sub: expected a link to a regular file, got a link to a directory");
  }
  SUBCASE("link to a device") {
    std::filesystem::create_symlink("/dev/zero", dir / "m/zero");
    refuse({dir / "m"}, Errc::invalid, "m/zero: expected a link to a regular file, got a link to a device");
  }
  SUBCASE("dangling link") {
    std::filesystem::create_symlink("nowhere", dir / "m/gone");
    refuse({dir / "m"}, Errc::not_found, "m/gone: link that leads nowhere");
  }
  SUBCASE("link to itself") {
    std::filesystem::create_symlink("loop", dir / "m/loop");
    refuse({dir / "m"}, Errc::invalid, "m/loop: link that leads nowhere");
  }
  SUBCASE("fifo") {
    REQUIRE(::mkfifo((dir / "m/pipe").c_str(), 0600) == 0);
    refuse({dir / "m"}, Errc::invalid, "m/pipe: expected a regular file or a directory, got a fifo");
    refuse({dir / "m/pipe"}, Errc::invalid, "got a fifo");
  }
  SUBCASE("socket") {
    weft::Fd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = dir / "m/s";
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    refuse({dir / "m"}, Errc::invalid, "m/s: expected a regular file or a directory, got a socket");
  }
  SUBCASE("nothing there") {
    refuse({dir / "none"}, Errc::not_found, "none: No such file");
  }
}

TEST_CASE("one path twice, or a file where a directory must be, is refused") {
  TempDir dir;
  write_file(dir / "m/a", "1");
  write_file(dir / "n/a", "2");
  write_file(dir / "n2/b/c", "2");
  write_file(dir / "b", "2");
  write_file(dir / "b-", "2");
  refuse({dir / "m", dir / "n"}, Errc::invalid, "both would be a");
  refuse({dir / "m", dir / "m"}, Errc::invalid, "both would be a");
  refuse({dir / "n2", dir / "b-", dir / "b"}, Errc::invalid, "needs a directory of that name");
}

TEST_CASE("a directory without files, a name that no version can hold, and the store itself are refused") {
  TempDir dir;
  REQUIRE(weft::make_directory(dir / "empty").ok());
  refuse({dir / "empty"}, Errc::invalid, "no file to publish");
  write_file(dir / "bad/new\nline", "1");
  refuse({dir / "bad"}, Errc::invalid, "new\\x0aline");
  write_file(dir / "m/store/weft-store", "1");
  auto sources = gather_sources(Paths{dir / "m"}, dir / "m/store");
  REQUIRE_FALSE(sources.ok());
  CHECK(sources.error().message.find("this is the store itself") != std::string::npos);
}

TEST_CASE("a file that was written to, replaced or turned into a fifo has changed") {
  TempDir dir;
  std::string path = dir / "a";
  const weft::SourceFile source{"a", path};
  write_file(path, "123");
  struct stat before {};
  REQUIRE(weft::open_source(source, before).ok());
  CHECK(weft::check_unchanged(path, before, before).ok());

  struct stat other = before;
  other.st_mtim.tv_nsec ^= 1;
  CHECK(weft::check_unchanged(path, before, other).error().code == Errc::changed);
  other = before;
  other.st_ino += 1;
  CHECK(weft::check_unchanged(path, before, other).error().code == Errc::changed);
  write_file(path, "1234");
  struct stat after {};
  REQUIRE(weft::open_source(source, after).ok());
  CHECK(weft::check_unchanged(path, before, after).error().message ==
        path + ": changed while it was read: expected 3 bytes, got 4");

  REQUIRE(::unlink(path.c_str()) == 0);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(weft::open_source(source, after).error().code == Errc::changed);  // without waiting for a writer of the fifo
}

// Names and facts of drafts, and the tree of drafts.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fuse/drafts/draft_check.h"
#include "fuse/drafts/draft_facts.h"
#include "fuse/drafts/draft_file.h"
#include "fuse/drafts/draft_space.h"
#include "fuse/drafts/draft_tree.h"
#include "fuse/drafts/publisher.h"
#include "testing.h"

namespace weft {
namespace {

using namespace testing;

// The file "x", open for writing, in the directory "a" of new/.
struct NewDraft {
  const TempDir dir;
  const std::unique_ptr<DraftTree> tree = must(DraftTree::open(dir.path()));
  DraftFound made, file;  // of a, and of x
  Fd fd;

  NewDraft() {
    REQUIRE(tree->make_directory(kNewIno, "a", 0755, made) == 0);
    REQUIRE(tree->create(made.ino, "x", O_EXCL, 0644, file, fd) == 0);
  }
};

TEST_CASE("the name of a rename that publishes") {
  CHECK_FALSE(publish_name("m"));
  CHECK_FALSE(publish_name("@prod"));
  const auto plain = publish_name("m@");
  REQUIRE(plain);
  CHECK(plain->name == "m");
  CHECK(plain->tag.empty());
  CHECK(publish_name("m@prod")->tag == "prod");
  CHECK(publish_name("m@a@b")->tag == "a@b");  // the import refuses this tag
}

TEST_CASE("facts of a draft") {
  const auto facts = parse_draft_facts(
      R"({"message": "m", "metrics": {"loss": 0.5, "step": 7, "by": "me"}, "tags": ["a"], "parents": ["p@1"],)"
      R"( "inherit": "b@2", "durability": "origin", "keep": 3})");
  REQUIRE(facts.ok());
  CHECK(facts->message == "m");
  CHECK(facts->metrics ==
        std::vector<std::pair<std::string, std::string>>{{"by", "me"}, {"loss", "0.5"}, {"step", "7"}});
  CHECK(facts->tags == std::vector<std::string>{"a"});
  CHECK(facts->parents == std::vector<std::string>{"p@1"});
  CHECK(facts->inherit == "b@2");
  CHECK(facts->durability == "origin");
  CHECK(facts->keep == 3);
  for (const char* bad : {"", "7", "[]", R"({"message": 7})", R"({"tags": "a"})", R"({"tags": [7]})", R"({"keep": -1})",
                          R"({"keep": "3"})", R"({"metrics": []})", R"({"metrics": {"a": {}}})",
                          R"({"metrics": {"a": null}})", R"({"other": 1})", R"({"message": "a", "message": "b"})"}) {
    CAPTURE(bad);
    CHECK(parse_draft_facts(bad).error().code == Errc::invalid);
  }
}

TEST_CASE("facts of a directory whose checkpoints are published") {
  const auto facts = parse_draft_facts(R"({"model": "org/m", "each": "step-*", "when": "done", "tags": ["a"]})");
  REQUIRE(facts.ok());
  REQUIRE(facts->each);
  CHECK(facts->each->model == "org/m");
  CHECK(facts->each->pattern == "step-*");
  CHECK(facts->each->when == "done");
  CHECK_FALSE(parse_draft_facts("{}")->each);
  for (const char* bad : {R"({"model": "m"})", R"({"each": "a", "when": "b"})", R"({"model": "m", "each": "a"})",
                          R"({"model": "m", "each": "a/b", "when": "c"})", R"({"model": "m", "each": "", "when": "c"})",
                          R"({"model": 7, "each": "a", "when": "c"})"}) {
    CAPTURE(bad);
    CHECK(parse_draft_facts(bad).error().code == Errc::invalid);
  }
}

TEST_CASE("the metrics of a training that transformers runs") {
  const TempDir dir;
  const Fd fd = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  CHECK(trainer_metrics(fd.get()).empty());
  write_file(dir / "trainer_state.json",
             R"({"log_history": [{"loss": 2.5, "step": 1, "epoch": 0.5}, {"loss": 1.5, "step": 2},)"
             R"( {"eval_loss": 3, "step": 2, "epoch": 1.5}], "other": []})");
  CHECK(trainer_metrics(fd.get()) == std::vector<std::pair<std::string, std::string>>{
                                         {"loss", "1.5"}, {"eval_loss", "3"}, {"step", "2"}, {"epoch", "1.5"}});
  write_file(dir / "trainer_state.json", R"({"log_history": [7, {"loss": [1]}, null]})");
  CHECK(trainer_metrics(fd.get()).empty());
}

TEST_CASE("a file that is a version's too is copied before it is changed") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  DraftFound made, file, after;
  Fd fd;
  REQUIRE(tree->make_directory(kNewIno, "a", 0755, made) == 0);
  REQUIRE(tree->create(made.ino, "x", O_EXCL, 0640, file, fd) == 0);
  must(write_exact(fd.get(), 0, std::as_bytes(std::span("four")).first(4), "x"));
  CHECK(tree->own(file.ino, false) == 0);
  REQUIRE(::linkat(tree->folder(), "tree/a/x", tree->folder(), "pack", 0) == 0);
  bool empty = false;
  SUBCASE("with what it holds") {}
  SUBCASE("or empty") {
    empty = true;
  }
  CHECK(tree->own(file.ino, empty) == -ESTALE);
  REQUIRE(tree->lookup(made.ino, "x", after) == 0);
  CHECK(after.ino != file.ino);
  CHECK(after.st.st_size == (empty ? 0 : 4));
  CHECK((after.st.st_mode & 07777U) == 0640U);
  CHECK(tree->own(after.ino, false) == 0);
  CHECK(tree->create(made.ino, "x", O_TRUNC, 0644, after, fd) == 0);
  CHECK(must(stat_file(dir.path() + "/drafts/pack")).st_size == 4);
}

TEST_CASE("drafts have a limit") {
  NewDraft draft;
  DraftSpace space(*draft.tree, 1000);
  CHECK(space.admit() == 0);
  const auto resize = [&](std::uint64_t bytes) { return ::ftruncate(draft.fd.get(), static_cast<off_t>(bytes)); };
  const auto announce = [&](DraftSpace& to, std::uint64_t more, std::uint64_t bytes) {
    return to.announce([more] { return more; }, [&] { return resize(bytes); });
  };
  CHECK(announce(space, 1001, 1001) == -EDQUOT);
  CHECK(announce(space, 900, 900) == 0);
  CHECK(space.bytes() == 900);
  CHECK(announce(space, 101, 1001) == -EDQUOT);
  CHECK(announce(space, 100, 1000) == 0);
  CHECK(space.admit() == -EDQUOT);
  CHECK(space.announce([] { return 0; }, [] { return -7; }) == -7);
  CHECK(space.write(0, [] { return -7; }) == -7);
  CHECK(space.write(1, [] { return 0; }) == -EDQUOT);
  SUBCASE("a removed file is not counted") {
    CHECK(draft.tree->remove(draft.made.ino, "x", 0) == 0);
  }
  SUBCASE("a published file is not counted") {
    CHECK(::linkat(draft.tree->folder(), "tree/a/x", draft.tree->folder(), "pack", 0) == 0);
  }
  CHECK(space.write(1000, [] { return 0; }) == 0);
}

TEST_CASE("a second name takes no draft out of the count") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const std::string file = dir.path() + "/drafts/tree/x";
  write_file(file, "1234567");
  REQUIRE(::link(file.c_str(), (dir.path() + "/other").c_str()) == 0);
  CHECK(tree->bytes() == 0);  // it counts as a version's
  if (::geteuid() != 0) return;
  REQUIRE(::chown(file.c_str(), 64001, 64001) == 0);
  CHECK(tree->bytes() == 7);
}

TEST_CASE("an open draft counts without a name") {
  NewDraft draft;
  DraftSpace space(*draft.tree, 1000);
  auto open = must(DraftFile::open(*draft.tree, draft.file.ino, true));
  REQUIRE(draft.tree->remove(draft.made.ino, "x", 0) == 0);
  const auto resize = [&] { return ::ftruncate(draft.fd.get(), 900); };
  CHECK(space.announce([] { return 900; }, resize) == 0);
  CHECK(draft.tree->bytes() == 900);
  CHECK(space.announce([] { return 101; }, [] { return 0; }) == -EDQUOT);
  SUBCASE("until it is closed") {
    open.file.reset();
    CHECK(space.announce([] { return 101; }, [] { return 0; }) == 0);
  }
}

TEST_CASE("a draft that a server before had open for writing stays written to") {
  NewDraft draft;
  bool before = false;
  SUBCASE("until all have closed it") {
    before = true;
  }
  SUBCASE("but no other one") {}
  auto open = must(DraftFile::open(*draft.tree, draft.file.ino, before));
  auto* file = static_cast<DraftFile*>(open.file.get());
  file->writer_opened(std::move(draft.fd));
  file->writer_closed();
  CHECK(not_written(file->backing_fd()) == !before);
}

TEST_CASE("refused writers do not delay other writers") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  DraftSpace space(*tree, 1000);
  DraftFound made, found;
  Fd fd;
  REQUIRE(tree->make_directory(kNewIno, "a", 0755, made) == 0);
  for (int i = 0; i < 200; ++i) REQUIRE(tree->create(made.ino, fmt::format("x{}", i).c_str(), 0, 0644, found, fd) == 0);
  std::atomic<bool> over{false};
  std::atomic<int> refused{0}, wrong{0};
  std::vector<std::jthread> greedy;
  for (int i = 0; i < 4; ++i)
    greedy.emplace_back([&] {
      while (!over) (space.announce([] { return 1001; }, [] { return 0; }) == -EDQUOT ? refused : wrong)++;
    });
  for (int i = 0; i < 100; ++i) CHECK(space.announce([] { return 1; }, [] { return -EIO; }) == -EIO);
  while (refused < 8) std::this_thread::yield();
  over = true;
  greedy.clear();
  CHECK(wrong == 0);
}

TEST_CASE("a directory that all users share") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  DraftFound found, again;
  CHECK(tree->share(kNewIno, "org", found) == 0);
  CHECK(tree->is_shared(found.ino));
  CHECK(tree->share(kNewIno, "org", again) == 0);
  CHECK(again.ino == found.ino);
  SUBCASE("the directory that a dead process left is used next") {
    ::mkdirat(tree->folder(), "namespace", 0700);
    REQUIRE(::fchmodat(tree->folder(), "namespace", 0700, 0) == 0);
    CHECK(tree->share(found.ino, "below", again) == 0);
    CHECK((again.st.st_mode & 07777U) == 01777U);
    CHECK(::faccessat(tree->folder(), "namespace", F_OK, 0) != 0);
  }
  SUBCASE("an existing directory keeps its mode") {
    REQUIRE(tree->make_directory(kNewIno, "mine", 0700, found) == 0);
    CHECK(tree->share(kNewIno, "mine", again) == 0);
    CHECK(again.ino == found.ino);
    CHECK((again.st.st_mode & 07777U) == 0700U);
  }
  SUBCASE("threads that make several at once") {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&tree, i] {
        DraftFound one;
        for (int j = 0; j < 20; ++j) {
          CHECK(tree->share(kNewIno, fmt::format("n{}", (i + j) % 16).c_str(), one) == 0);
          CHECK((one.st.st_mode & 07777U) == 01777U);
        }
      });
  }
}

TEST_CASE("mounts of one store share the limit of drafts") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path())), other_tree = must(DraftTree::open(dir.path()));
  DraftFound made, file;
  Fd fd;
  REQUIRE(tree->make_directory(kNewIno, "a", 0755, made) == 0);
  REQUIRE(tree->create(made.ino, "x", O_EXCL, 0644, file, fd) == 0);
  DraftSpace space(*tree, 1000), other(*other_tree, 1000);
  CHECK(other.admit() == 0);  // takes the first count
  const auto size_to = [&](std::uint64_t bytes) {
    return [&fd, bytes] { return ::ftruncate(fd.get(), static_cast<off_t>(bytes)); };
  };
  CHECK(space.announce([] { return 900; }, size_to(900)) == 0);
  CHECK(other.announce([] { return 101; }, size_to(1001)) == -EDQUOT);
  CHECK(other.write(101, [] { return 0; }) == -EDQUOT);
  CHECK(other.bytes() == 900);
  CHECK(other.announce([] { return 100; }, size_to(1000)) == 0);
  CHECK(space.admit() == -EDQUOT);
  SUBCASE("if the file says nonsense, the drafts are counted again") {
    write_file(dir.path() + "/drafts/space", "\xff\xff\xff\xff\xff\xff\xff\x7f");
    CHECK(space.admit() == -EDQUOT);
    CHECK(::ftruncate(fd.get(), 10) == 0);
    CHECK(space.announce([] { return 990; }, size_to(1000)) == 0);
    CHECK(other.announce([] { return 1; }, size_to(1001)) == -EDQUOT);
  }
}

TEST_CASE("a server died before the file had moved in") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  DraftPublisher publisher(*tree, {dir.path(), "/bin/false"});
  PublishOrder order;
  order.request = 7;
  order.user = {::getuid(), ::getgid(), {}};
  order.dir = kNewIno;
  order.name = "x";
  order.model = "m";
  const std::string folder = dir.path() + "/drafts/publishing/0000000000000007";
  std::filesystem::create_directories(folder + "/held/content");
  write_file(folder + "/order", R"({"dir":)" + std::to_string(kNewIno) + R"(,"name":"x","uid":0,"gid":0,"model":"m",)" +
                                    R"("file":true,"stays":0,"written_ns":0})");
  SUBCASE("it comes back once the import has failed") {
    write_file(dir.path() + "/drafts/tree/x", "x");
    CHECK(publisher.publish(order, [] { return true; }) == -EIO);
    CHECK(must(stat_file(dir.path() + "/drafts/tree/x")).st_size == 1);
    CHECK(std::filesystem::exists(dir.path() + "/drafts/tree/x.weft.error"));
  }
  SUBCASE("and is gone by now") {
    CHECK(publisher.publish(order, [] { return true; }) == -ENOENT);
  }
  CHECK(!std::filesystem::exists(folder));
}

TEST_CASE("the requests of two mounts have the same numbers") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  write_file(dir.path() + "/drafts/tree/x", "x");
  const std::string folder = dir.path() + "/drafts/publishing/0000000000000007first";
  std::filesystem::create_directories(folder + "/held");
  write_file(folder + "/answer", R"({"version":1})");
  PublishOrder order;
  order.request = 7;
  order.user = {::getuid(), ::getgid(), {}};
  order.dir = kNewIno;
  order.name = "x";
  order.model = "m";
  const auto publish = [&](const std::string& mount) {
    return DraftPublisher(*tree, {dir.path(), "/bin/false", false, "", mount}).publish(order, [] { return true; });
  };
  CHECK(publish("first") == 0);  // as an earlier server answered it
  CHECK(publish("second") == -EIO);
}

TEST_CASE("a publish that was cut short is put back unless a server has it in work") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const std::string folder = dir.path() + "/drafts/publishing/0000000000000007";
  std::filesystem::create_directories(folder + "/held/content");
  write_file(folder + "/order", R"({"dir":)" + std::to_string(kNewIno) + R"(,"name":"x","uid":0,"gid":0,"model":"m",)" +
                                    R"("file":false,"stays":0,"written_ns":0})");
  const Fd in_work = must(open_file(folder, O_RDONLY | O_DIRECTORY));
  DraftPublisher publisher(*tree, {dir.path(), "/bin/false"});
  const time_t later = ::time(nullptr) + 1000;
  const auto is_back = [&] { return std::filesystem::exists(dir.path() + "/drafts/tree/x"); };
  REQUIRE(::flock(in_work.get(), LOCK_SH) == 0);
  publisher.recover(later);
  CHECK(!is_back());
  REQUIRE(::flock(in_work.get(), LOCK_UN) == 0);
  publisher.recover(::time(nullptr));
  CHECK(!is_back());
  publisher.recover(later);
  CHECK(is_back());
  CHECK(!std::filesystem::exists(folder));
}

TEST_CASE("a draft with more files than a version may have is refused") {
  const TempDir dir;
  std::filesystem::create_directory(dir / "deep");
  for (const char* name : {"a", "b", "deep/c"}) write_file(dir / name, "x");
  const auto check = [&dir](std::size_t files_max) {
    const Fd draft = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
    return check_draft(
        draft.get(), [] { return true; }, files_max);
  };
  CHECK(check(4).ok());
  const auto checked = check(3);
  REQUIRE_FALSE(checked.ok());
  CHECK(checked.error().code == Errc::invalid);
  CHECK(checked.error().message.ends_with(": expected at most 3 files in a version"));
}

TEST_CASE("a new tree finds the numbers that another one gave") {
  const TempDir dir;
  DraftFound directory, file;
  {
    const auto tree = must(DraftTree::open(dir.path()));
    REQUIRE(tree->make_directory(kNewIno, "m", 0755, directory) == 0);
    Fd fd;
    REQUIRE(tree->create(directory.ino, "x", O_EXCL, 0644, file, fd) == 0);
    CHECK((directory.st.st_mode & 07777U) == 0700U);
  }
  const auto tree = must(DraftTree::open(dir.path()));
  std::string path;
  CHECK(tree->path(file.ino, path) == 0);
  CHECK(path == "m/x");
  struct stat st {};
  CHECK(tree->stat(file.ino, st) == 0);
  CHECK(tree->stat(kNewIno + 1, st) == -ENOENT);
}

TEST_CASE("a tree follows what another mount moves") {
  const TempDir dir;
  const auto one = must(DraftTree::open(dir.path()));
  const auto other = must(DraftTree::open(dir.path()));
  DraftFound made, file;
  REQUIRE(one->make_directory(kNewIno, "a", 0755, made) == 0);
  Fd fd;
  REQUIRE(one->create(made.ino, "x", O_EXCL, 0644, file, fd) == 0);
  REQUIRE(other->rename(kNewIno, "a", kNewIno, "b", 0) == 0);
  struct stat st {};
  CHECK(one->stat(file.ino, st) == 0);
  std::string path;
  CHECK(one->path(file.ino, path) == 0);
  CHECK(path == "b/x");
}

TEST_CASE("no path leaves the tree") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  DraftFound made, found;
  REQUIRE(tree->make_link(kNewIno, "out", "/", made) == 0);
  CHECK(tree->lookup(made.ino, "etc", found) != 0);
  Fd fd;
  CHECK(tree->create(made.ino, "x", 0, 0644, found, fd) != 0);
  CHECK(tree->open(made.ino, O_RDONLY, fd) != 0);
}

}  // namespace
}  // namespace weft

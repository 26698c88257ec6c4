// What the names and facts of drafts say, and the tree that they lie in.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>
#include <string>

#include "fuse/drafts/draft_check.h"
#include "fuse/drafts/draft_tree.h"
#include "fuse/drafts/publisher.h"
#include "testing.h"

namespace weft {
namespace {

using namespace testing;

TEST_CASE("the name of a rename that publishes") {
  CHECK_FALSE(publish_name("m"));
  CHECK_FALSE(publish_name("@prod"));
  const auto plain = publish_name("m@");
  REQUIRE(plain);
  CHECK(plain->name == "m");
  CHECK(plain->tag.empty());
  CHECK(publish_name("m@prod")->tag == "prod");
  CHECK(publish_name("m@a@b")->tag == "a@b");  // which the import refuses
}

TEST_CASE("facts of a draft") {
  const auto facts = parse_draft_facts(
      R"({"message": "m", "metrics": {"loss": 0.5, "step": 7, "by": "me"}, "tags": ["a"], "parents": ["p@1"],)"
      R"( "inherit": "b@2", "durability": "origin"})");
  REQUIRE(facts.ok());
  CHECK(facts->message == "m");
  CHECK(facts->metrics ==
        std::vector<std::pair<std::string, std::string>>{{"by", "me"}, {"loss", "0.5"}, {"step", "7"}});
  CHECK(facts->tags == std::vector<std::string>{"a"});
  CHECK(facts->parents == std::vector<std::string>{"p@1"});
  CHECK(facts->inherit == "b@2");
  CHECK(facts->durability == "origin");
  for (const char* bad : {"", "7", "[]", R"({"message": 7})", R"({"tags": "a"})", R"({"tags": [7]})",
                          R"({"metrics": []})", R"({"metrics": {"a": {}}})", R"({"metrics": {"a": null}})",
                          R"({"other": 1})", R"({"message": "a", "message": "b"})"}) {
    CAPTURE(bad);
    CHECK(parse_draft_facts(bad).error().code == Errc::invalid);
  }
}

TEST_CASE("a new tree finds the numbers that another one gave") {
  const TempDir dir;
  DraftFound directory, file;
  {
    const auto tree = must(DraftTree::open(dir.path()));
    REQUIRE(tree->make_directory(kNewIno, "m", 0755, directory) == 0);
    REQUIRE(tree->create(directory.ino, "x", O_EXCL, 0644, file) == 0);
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
  REQUIRE(one->create(made.ino, "x", O_EXCL, 0644, file) == 0);
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
  CHECK(tree->create(made.ino, "x", 0, 0644, found) != 0);
  Fd fd;
  CHECK(tree->open(made.ino, O_RDONLY, fd) != 0);
}

}  // namespace
}  // namespace weft

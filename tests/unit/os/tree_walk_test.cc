// The walk over a tree of files.
#include "os/tree_walk.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "testing.h"

namespace weft {
namespace {

using namespace testing;

struct Tree {
  const TempDir dir;
  std::vector<std::string> seen;
  TreeWalk walk{100};

  Tree() {
    for (const char* name : {"b/2", "b/1", "a", "c/d/e"}) write_file(dir / name, "x");
    std::filesystem::create_directory_symlink("b", dir / "link");
    walk.visit = [this](const TreeEntry& entry) -> Result<WalkNext> {
      seen.push_back(entry.path);
      return WalkNext::enter;
    };
  }

  Status run() const { return walk_tree(must(open_file(dir.path(), O_RDONLY | O_DIRECTORY)), "top", walk); }
};

TEST_CASE("a walk visits each entry in order, before those below it, and follows no link") {
  Tree tree;
  tree.walk.leave = [&](const TreeEntry* entry, int, const std::vector<std::string>& names) -> Status {
    tree.seen.push_back((entry == nullptr ? "" : entry->path) + "-" + std::to_string(names.size()));
    return {};
  };
  must(tree.run());
  CHECK(tree.seen ==
        std::vector<std::string>{"a", "b", "b/1", "b/2", "b-2", "c", "c/d", "c/d/e", "c/d-1", "c-1", "link", "-4"});
}

TEST_CASE("a visit decides where a walk goes on") {
  Tree tree;
  tree.walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    tree.seen.push_back(entry.path);
    CHECK(entry.depth == static_cast<std::size_t>(std::count(entry.path.begin(), entry.path.end(), '/')));
    if (entry.name == "b") return WalkNext::pass;
    return entry.name == "d" ? WalkNext::end : WalkNext::enter;
  };
  must(tree.run());
  CHECK(tree.seen == std::vector<std::string>{"a", "b", "c", "c/d"});
}

TEST_CASE("a walk has bounds") {
  Tree tree;
  SUBCASE("of entries") {
    tree.walk.entries_max = 3;
    CHECK(tree.run().error().message == "top/b/2: expected at most 3 files and directories");
    CHECK(tree.seen.size() == 3);
  }
  SUBCASE("of depth") {
    tree.walk.components_max = 2;
    CHECK(tree.run().error().message == "top/c/d/e: expected at most 2 directories deep");
  }
  SUBCASE("of depth, beyond which it may pass on") {
    tree.walk.components_max = 2;
    tree.walk.failed = pass_failed;
    must(tree.run());
    CHECK(tree.seen.size() == 7);
  }
}

TEST_CASE("an entry that cannot be entered ends a walk, or is left out") {
  Tree tree;
  tree.walk.open = [](const TreeEntry& entry) -> Result<Fd> { return Error{Errc::permission, entry.path}; };
  CHECK(tree.run().error().message == "b");
  tree.seen.clear();
  tree.walk.failed = pass_failed;
  must(tree.run());
  CHECK(tree.seen == std::vector<std::string>{"a", "b", "c", "link"});
}

TEST_CASE("a tree of any depth is removed") {
  const TempDir dir;
  const Fd top = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  Fd at = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  for (int depth = 0; depth < 700; ++depth) {
    REQUIRE(::mkdirat(at.get(), "d", 0700) == 0);
    at = Fd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (depth % 100 == 0) Fd(::openat(at.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  must(remove_tree_at(top.get(), "d", "d"));
  CHECK(std::filesystem::is_empty(dir.path()));
  must(remove_tree_at(top.get(), "d", "d"));
}

}  // namespace
}  // namespace weft

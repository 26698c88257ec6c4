// Which bytes count as drafts'.
#include "drafts/draft_rules.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "os/sys.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

TEST_CASE("a file counts unless it may be a pack of a version") {
  const DraftRules rules{7, 8};
  struct stat st {};
  st.st_mode = S_IFREG | 0644;
  st.st_nlink = 1;
  st.st_uid = 8;
  CHECK(rules.counts(st));
  st.st_nlink = 2;
  CHECK_FALSE(rules.counts(st));
  st.st_uid = 9;
  CHECK(rules.counts(st));
  st.st_uid = 8;
  st.st_mode = S_IFDIR | 0755;
  CHECK(rules.counts(st));
}

TEST_CASE("a namespace is a shared directory of the owner of new/") {
  const DraftRules rules{7, 8};
  struct stat st {};
  st.st_mode = S_IFDIR | 01777;
  st.st_uid = 7;
  CHECK(rules.is_shared(st));
  st.st_uid = 8;
  CHECK_FALSE(rules.is_shared(st));
  st.st_uid = 7;
  st.st_mode = S_IFDIR | 0777;
  CHECK_FALSE(rules.is_shared(st));
}

TEST_CASE("a file with several names in new/ counts once, also if it is the store's owner's") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const std::string below = dir.path() + "/drafts/tree/";
  write_file(below + "x", "1234567");
  REQUIRE(::link((below + "x").c_str(), (below + "y").c_str()) == 0);
  CHECK(tree->use().bytes == 7);
  CHECK(tree->use().inodes.at(::geteuid()) == 1);
  REQUIRE(::link((below + "x").c_str(), (dir.path() + "/other").c_str()) == 0);
  CHECK(tree->use().bytes == 0);
  if (::geteuid() != 0) return;
  REQUIRE(::chown((below + "x").c_str(), 64001, 64001) == 0);
  CHECK(tree->use().bytes == 7);
  CHECK(tree->use().inodes.at(64001) == 1);
}

TEST_CASE("a second name takes no draft out of the count") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const std::string file = dir.path() + "/drafts/tree/x";
  write_file(file, "1234567");
  REQUIRE(::link(file.c_str(), (dir.path() + "/other").c_str()) == 0);
  CHECK(tree->use().bytes == 0);  // it counts as a version's
  if (::geteuid() != 0) return;
  REQUIRE(::chown(file.c_str(), 64001, 64001) == 0);
  CHECK(tree->use().bytes == 7);
}

}  // namespace
}  // namespace weft

// The files of new/, and an open file.
#include "drafts/draft_tree.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "drafts/draft_file.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

UserIds own() {
  return {::geteuid(), ::getegid(), {}};
}

// Makes directories, each in the one before. Returns the last one.
Ino make_chain(DraftTree& tree, Ino dir, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dir = must(tree.make_directory(dir, "d", 0755)).ino;
  return dir;
}

TEST_CASE("a file that is a version's too is copied before it is changed") {
  NewDraft draft(0640);
  DraftTree& tree = *draft.tree;
  must(write_exact(draft.file.fd.get(), 0, std::as_bytes(std::span("four")).first(4), "x"));
  CHECK(tree.own(draft.file.found.ino, false).ok());
  REQUIRE(::linkat(tree.folder(), "tree/a/x", tree.folder(), "pack", 0) == 0);
  bool empty = false;
  SUBCASE("with its content") {}
  SUBCASE("or empty") {
    empty = true;
  }
  CHECK(code_of(tree.own(draft.file.found.ino, empty)) == Errc::changed);
  const DraftFound after = must(tree.lookup(draft.made.ino, "x"));
  CHECK(after.ino != draft.file.found.ino);
  CHECK(after.st.st_size == (empty ? 0 : 4));
  CHECK((after.st.st_mode & 07777U) == 0640U);
  CHECK(tree.own(after.ino, false).ok());
  CHECK(tree.create(draft.made.ino, "x", O_TRUNC, 0644).ok());
  CHECK(must(stat_file(draft.dir.path() + "/drafts/pack")).st_size == 4);
}

TEST_CASE("an earlier server's writer keeps a draft written") {
  NewDraft draft;
  bool before = false;
  SUBCASE("until all have closed it") {
    before = true;
  }
  SUBCASE("but no other one") {}
  const auto file = must(DraftFile::open(*draft.tree, draft.file.found.ino, before));
  file->writer_opened(std::move(draft.file.fd));
  file->writer_closed();
  CHECK(not_written(file->backing_fd()) == !before);
}

TEST_CASE("a directory that all users share") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const DraftFound found = must(tree->share(kNewIno, "org"));
  CHECK(tree->is_shared(found.ino));
  CHECK(must(tree->share(kNewIno, "org")).ino == found.ino);
  SUBCASE("a nameless directory of a dead process becomes the next one") {
    ::mkdirat(tree->folder(), "namespace", 0700);
    REQUIRE(::fchmodat(tree->folder(), "namespace", 0700, 0) == 0);
    CHECK((must(tree->share(found.ino, "below")).st.st_mode & 07777U) == 01777U);
    CHECK(::faccessat(tree->folder(), "namespace", F_OK, 0) != 0);
  }
  SUBCASE("an existing directory stays as it is") {
    const DraftFound mine = must(tree->make_directory(kNewIno, "mine", 0700));
    const DraftFound again = must(tree->share(kNewIno, "mine"));
    CHECK(again.ino == mine.ino);
    CHECK((again.st.st_mode & 07777U) == 0700U);
  }
  SUBCASE("threads that make several at once") {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&tree, i] {
        for (int j = 0; j < 20; ++j) {
          const auto one = tree->share(kNewIno, fmt::format("n{}", (i + j) % 16));
          CHECK((one.ok() && (one->st.st_mode & 07777U) == 01777U));
        }
      });
  }
}

TEST_CASE("a published directory becomes a shared one") {
  NewDraft draft;
  REQUIRE(::fchmod(draft.file.fd.get(), 0644) == 0);
  draft.tree->share_directory(draft.made.ino);
  CHECK(draft.tree->is_shared(draft.made.ino));
  CHECK((must(draft.tree->stat(draft.file.found.ino)).st_mode & 07777U) == 0600U);
}

TEST_CASE("a new tree finds the numbers that another one gave") {
  const TempDir dir;
  DraftFound directory, file;
  {
    const auto tree = must(DraftTree::open(dir.path()));
    directory = must(tree->make_directory(kNewIno, "m", 0755));
    file = must(tree->create(directory.ino, "x", O_EXCL, 0644)).found;
    CHECK((directory.st.st_mode & 07777U) == 0700U);
  }
  const auto tree = must(DraftTree::open(dir.path()));
  CHECK(must(tree->places().path(file.ino)) == "m/x");
  CHECK(tree->stat(file.ino).ok());
  CHECK(code_of(tree->stat(kNewIno + 1)) == Errc::not_found);
}

TEST_CASE("a tree follows a directory that another mount moves") {
  NewDraft draft;
  const auto other = must(DraftTree::open(draft.dir.path()));
  REQUIRE(other->rename(own(), kNewIno, "a", kNewIno, "b", 0).ok());
  CHECK(draft.tree->stat(draft.file.found.ino).ok());
  CHECK(must(draft.tree->places().path(draft.file.found.ino)) == "b/x");
}

TEST_CASE("no path leaves the tree") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const DraftFound made = must(tree->make_link(kNewIno, "out", "/"));
  CHECK(must(tree->read_link(made.ino)) == "/");
  CHECK_FALSE(tree->lookup(made.ino, "etc").ok());
  CHECK_FALSE(tree->create(made.ino, "x", 0, 0644).ok());
  CHECK_FALSE(tree->open(made.ino, O_RDONLY).ok());
}

TEST_CASE("a failed call has the kernel's errno") {
  NewDraft draft;
  DraftTree& tree = *draft.tree;
  CHECK(os_error_of(tree.lookup(draft.made.ino, "y")) == ENOENT);
  CHECK(os_error_of(tree.lookup(draft.file.found.ino, "y")) == ENOTDIR);
  CHECK(os_error_of(tree.remove(kNewIno, "a", AT_REMOVEDIR)) == ENOTEMPTY);
  CHECK(os_error_of(tree.remove(kNewIno, "a", 0)) == EISDIR);
  CHECK(os_error_of(tree.make_directory(draft.made.ino, "x", 0755)) == EEXIST);
  CHECK(os_error_of(tree.create(draft.made.ino, "x", O_EXCL, 0644)) == EEXIST);
  CHECK(os_error_of(tree.create(draft.made.ino, std::string(300, 'n'), 0, 0644)) == ENAMETOOLONG);
  CHECK(os_error_of(tree.rename(own(), kNewIno, "a", draft.made.ino, "b", 0)) == EINVAL);
}

TEST_CASE("nothing is made in a directory below too many others") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const Ino deepest = make_chain(*tree, kNewIno, limits::kPathComponentsMax);
  CHECK(os_error_of(tree->make_directory(deepest, "d", 0755)) == ELOOP);
  CHECK(os_error_of(tree->make_link(deepest, "l", "/")) == ELOOP);
  CHECK(os_error_of(tree->create(deepest, "x", 0, 0644)) == ELOOP);
  must(tree->create(kNewIno, "x", 0, 0644));
  CHECK(os_error_of(tree->rename(own(), kNewIno, "x", deepest, "x", 0)) == ELOOP);
  std::size_t entries = 0;
  must(tree->list(deepest, 0, [&](const std::string&, const DraftFound&, off_t) { return ++entries, true; }));
  CHECK(entries == 2);  // "." and ".."
}

TEST_CASE("no directory moves to where entries below it would be too deep") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const Ino deep = make_chain(*tree, kNewIno, limits::kPathComponentsMax - 3);
  const DraftFound fits = must(tree->make_directory(kNewIno, "fits", 0755));
  const DraftFound not_fits = must(tree->make_directory(kNewIno, "not fits", 0755));
  must(tree->create(make_chain(*tree, fits.ino, 1), "x", 0, 0644));
  must(tree->create(make_chain(*tree, not_fits.ino, 2), "x", 0, 0644));
  CHECK(os_error_of(tree->rename(own(), kNewIno, "not fits", deep, "y", 0)) == ELOOP);
  CHECK(tree->rename(own(), kNewIno, "fits", deep, "y", 0).ok());
  CHECK(os_error_of(tree->rename(own(), kNewIno, "not fits", deep, "y", RENAME_EXCHANGE)) == ELOOP);
  CHECK(os_error_of(tree->rename(own(), deep, "y", kNewIno, "not fits", RENAME_EXCHANGE)) == ELOOP);
  CHECK(tree->rename(own(), kNewIno, "not fits", kNewIno, "also", 0).ok());
  CHECK(tree->rename(own(), deep, "y", kNewIno, "fits", 0).ok());
}

TEST_CASE("a file that is too deep counts") {
  NewDraft draft;
  must(write_exact(draft.file.fd.get(), 0, as_bytes("1234"), "x"));
  const Ino deep = make_chain(*draft.tree, draft.made.ino, limits::kPathComponentsMax - 1);
  REQUIRE(deep != 0);
  std::string bottom = draft.dir.path() + "/drafts/tree/a";
  for (std::size_t i = 1; i < limits::kPathComponentsMax; ++i) bottom += "/d";
  const std::string other = draft.dir.path() + "/other";  // as by a rename while another thread makes directories
  write_file(other + "/e/y", "123");
  REQUIRE(::rename(other.c_str(), (bottom + "/other").c_str()) == 0);
  const DraftUse use = draft.tree->use();
  CHECK(use.bytes == 7);
  CHECK(use.inodes.at(::geteuid()) == limits::kPathComponentsMax + 4);
}

TEST_CASE("a directory is listed in parts") {
  NewDraft draft;
  for (const char* name : {"y", "z"}) must(draft.tree->create(draft.made.ino, name, 0, 0644));
  std::vector<std::string> names;
  off_t place = 0;
  for (std::size_t before = 1; names.size() != before;) {
    before = names.size();
    must(draft.tree->list(draft.made.ino, place, [&](const std::string& name, const DraftFound&, off_t next) {
      if (names.size() > before) return false;
      names.push_back(name);
      place = next;
      return true;
    }));
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{".", "..", "x", "y", "z"});
}

}  // namespace
}  // namespace weft

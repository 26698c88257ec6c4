// The limit of the bytes of drafts.
#include "drafts/draft_space.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "drafts/draft_file.h"
#include "os/entries.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

Status over(const char* what) {
  return Error{Errc::io, what};
}

TEST_CASE("drafts have a limit") {
  NewDraft draft;
  DraftSpace space(*draft.tree, 1000);
  CHECK(space.admit().ok());
  const auto announce = [&](std::uint64_t more, std::uint64_t bytes) {
    return space.announce([more] { return more; }, [&] { return resize_file(draft.file.fd.get(), bytes, "x"); });
  };
  CHECK(os_error_of(announce(1001, 1001)) == EDQUOT);
  CHECK(announce(900, 900).ok());
  CHECK(space.bytes() == 900);
  CHECK(os_error_of(announce(101, 1001)) == EDQUOT);
  CHECK(announce(100, 1000).ok());
  CHECK(code_of(space.admit()) == Errc::no_space);
  CHECK(space.announce([] { return 0; }, [] { return over("the act"); }).error().message == "the act");
  CHECK(space.write(0, [] { return over("the act"); }).error().message == "the act");
  CHECK(os_error_of(space.write(1, [] { return Status{}; })) == EDQUOT);
  SUBCASE("removed files do not count") {
    CHECK(draft.tree->remove(draft.made.ino, "x", 0).ok());
  }
  SUBCASE("files of a version do not count") {
    CHECK(::linkat(draft.tree->folder(), "tree/a/x", draft.tree->folder(), "pack", 0) == 0);
  }
  CHECK(space.write(1000, [] { return Status{}; }).ok());
}

TEST_CASE("an open draft counts without a name") {
  NewDraft draft;
  DraftSpace space(*draft.tree, 1000);
  auto open = must(DraftFile::open(*draft.tree, draft.file.found.ino, true));
  REQUIRE(draft.tree->remove(draft.made.ino, "x", 0).ok());
  const auto resize = [&] { return resize_file(draft.file.fd.get(), 900, "x"); };
  CHECK(space.announce([] { return 900; }, resize).ok());
  CHECK(draft.tree->use().bytes == 900);
  CHECK(os_error_of(space.announce([] { return 101; }, [] { return Status{}; })) == EDQUOT);
  SUBCASE("until it is closed") {
    open.reset();
    CHECK(space.announce([] { return 101; }, [] { return Status{}; }).ok());
  }
}

TEST_CASE("no user's empty files take all inodes") {
  NewDraft draft;
  constexpr uid_t kOne = 64001, kOther = 64002;
  DraftSpace space(*draft.tree, std::nullopt, 10);  // of which root has two
  for (int i = 0; i < 5; ++i) CHECK(space.admit_inode(kOne).ok());
  SUBCASE("each has a share") {
    // what was admitted and not made is forgotten at the count
    CHECK(space.admit_inode(kOne).ok());
  }
  SUBCASE("files that are there count") {
    for (int i = 0; i < 5; ++i) {
      const std::string name = "x" + std::to_string(i);
      const DraftCreated made = must(draft.tree->create(draft.made.ino, name, O_EXCL, 0644));
      if (::fchown(made.fd.get(), kOne, kOne) != 0) return;  // needs root
    }
    CHECK(os_error_of(space.admit_inode(kOne)) == EDQUOT);
    CHECK(space.admit_inode(kOther).ok());
    CHECK(space.admit().ok());
    REQUIRE(draft.tree->remove(draft.made.ino, "x0", 0).ok());
    CHECK(space.admit_inode(kOne).ok());
  }
}

TEST_CASE("a refused request does not hold up other requests for long") {
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  DraftSpace space(*tree, 1000);
  const DraftFound made = must(tree->make_directory(kNewIno, "a", 0755));
  for (int i = 0; i < 200; ++i) REQUIRE(tree->create(made.ino, fmt::format("x{}", i), 0, 0644).ok());
  std::atomic<bool> ended{false};
  std::atomic<int> refused{0}, wrong{0};
  std::vector<std::jthread> greedy;
  for (int i = 0; i < 4; ++i)
    greedy.emplace_back([&] {
      while (!ended) {
        const Status done = space.announce([] { return 1001; }, [] { return Status{}; });
        (os_error_of(done) == EDQUOT ? refused : wrong)++;
      }
    });
  for (int i = 0; i < 100; ++i) CHECK(code_of(space.announce([] { return 1; }, [] { return over("it"); })) == Errc::io);
  while (refused < 8) std::this_thread::yield();
  ended = true;
  greedy.clear();
  CHECK(wrong == 0);
}

TEST_CASE("requests go on while drafts are counted") {
  using Clock = std::chrono::steady_clock;
  const TempDir dir;
  const auto tree = must(DraftTree::open(dir.path()));
  const DraftFound made = must(tree->make_directory(kNewIno, "a", 0755));
  for (int i = 0; i < 4000; ++i) REQUIRE(tree->create(made.ino, fmt::format("x{}", i), 0, 0644).ok());
  DraftSpace space(*tree, 1000, 1'000'000);
  const auto begin = Clock::now();
  tree->use();
  const auto took = Clock::now() - begin;
  REQUIRE(space.admit_inode(0).ok());
  std::atomic<bool> ended{false};
  const std::jthread greedy([&] {
    while (!ended) static_cast<void>(space.announce([] { return 1001; }, [] { return Status{}; }));
  });
  int slow = 0;
  for (int i = 0; i < 60; ++i) {
    std::this_thread::sleep_for(took / 3);
    const auto asked = Clock::now();
    CHECK(space.admit_inode(0).ok());
    CHECK(space.write(1, [] { return over("the act"); }).error().message == "the act");
    if (Clock::now() - asked > took / 2) ++slow;
  }
  ended = true;
  CHECK(slow <= 7);  // of requests that wait for a running count: a quarter
}

TEST_CASE("writes fill the limit exactly while drafts are counted") {
  constexpr std::uint64_t kMax = 400;
  NewDraft draft;
  DraftSpace space(*draft.tree, kMax);
  std::atomic<bool> ended{false};
  const std::jthread greedy([&] {
    while (!ended) static_cast<void>(space.announce([] { return kMax + 1; }, [] { return Status{}; }));
  });
  std::atomic<std::uint64_t> all{0};
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&, i] {
      const auto made = draft.tree->create(draft.made.ino, fmt::format("y{}", i), 0, 0644);
      std::uint64_t size = 0;
      const auto grow = [&] { return resize_file(made->fd.get(), size + 1, "y"); };
      while (made.ok() && space.write(1, grow).ok()) ++size;
      all += size;
    });
  writers.clear();
  ended = true;
  CHECK(all == kMax);
  CHECK(draft.tree->use().bytes == kMax);
}

TEST_CASE("mounts of one store share the limit of drafts") {
  NewDraft draft;
  const auto other_tree = must(DraftTree::open(draft.dir.path()));
  const int fd = draft.file.fd.get();
  DraftSpace space(*draft.tree, 1000), other(*other_tree, 1000);
  CHECK(other.admit().ok());  // takes the first count
  const auto size_to = [fd](std::uint64_t bytes) { return [fd, bytes] { return resize_file(fd, bytes, "x"); }; };
  CHECK(space.announce([] { return 900; }, size_to(900)).ok());
  CHECK(os_error_of(other.announce([] { return 101; }, size_to(1001))) == EDQUOT);
  CHECK(os_error_of(other.write(101, [] { return Status{}; })) == EDQUOT);
  CHECK(other.bytes() == 900);
  CHECK(other.announce([] { return 100; }, size_to(1000)).ok());
  CHECK(os_error_of(space.admit()) == EDQUOT);
  SUBCASE("if the file says nonsense, the drafts are counted again") {
    write_file(draft.dir.path() + "/drafts/space", "\xff\xff\xff\xff\xff\xff\xff\x7f");
    CHECK(os_error_of(space.admit()) == EDQUOT);
    CHECK(::ftruncate(fd, 10) == 0);
    CHECK(space.announce([] { return 990; }, size_to(1000)).ok());
    CHECK(os_error_of(other.announce([] { return 1; }, size_to(1001))) == EDQUOT);
  }
}

}  // namespace
}  // namespace weft

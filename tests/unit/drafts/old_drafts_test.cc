// The drafts that gc removes.
#include "drafts/old_drafts.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "os/sys.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

std::vector<std::string> paths_of(const std::vector<OldDraft>& drafts) {
  std::vector<std::string> paths;
  for (const OldDraft& draft : drafts) paths.push_back(draft.path);
  return paths;
}

using Each = std::vector<std::uint64_t>;

Each bytes_of(const std::vector<OldDraft>& drafts) {
  Each bytes;
  for (const OldDraft& draft : drafts) bytes.push_back(draft.bytes);
  return bytes;
}

// Returns the bytes of each draft. Their sum is what drafts_max counts.
Each bytes_of(const NewDraft& draft) {
  Each bytes = bytes_of(must(old_drafts(draft.dir.path(), std::chrono::seconds(0))));
  CHECK(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}) == draft.tree->use().bytes);
  return bytes;
}

TEST_CASE("drafts in new/ and in its namespaces are removed when they are old") {
  NewDraft draft;
  const std::string new_dir = draft.dir.path() + "/drafts/tree";
  const DraftFound org = must(draft.tree->share(kNewIno, "org"));
  const DraftFound below = must(draft.tree->share(org.ino, "team"));
  must(draft.tree->make_directory(below.ino, "m", 0700));
  write_file(new_dir + "/org/team/m/deep/y", "123");
  write_file(new_dir + "/z", "12345");
  const auto old = [&draft](int seconds) { return must(old_drafts(draft.dir.path(), std::chrono::seconds(seconds))); };
  CHECK(old(1000).empty());
  CHECK(paths_of(old(0)) == std::vector<std::string>{"org/team/m", "z"});  // a/x is open for writing
  CHECK(old(0)[0].bytes == 3);
  draft.file.fd.reset();
  CHECK(paths_of(must(remove_old_drafts(draft.dir.path(), std::chrono::seconds(0)))) ==
        std::vector<std::string>{"a", "org/team/m", "z"});
  CHECK(old(0).empty());
  CHECK(std::filesystem::exists(new_dir + "/org/team"));
}

TEST_CASE("gc counts the bytes that drafts_max counts") {
  NewDraft draft;
  const std::string below = draft.dir.path() + "/drafts/tree/";
  const std::string file = below + "a/x";
  must(write_exact(draft.file.fd.get(), 0, as_bytes("1234567"), "x"));
  draft.file.fd.reset();
  const std::string other = draft.dir.path() + "/other";
  REQUIRE(::link(file.c_str(), other.c_str()) == 0);
  const bool is_users = ::geteuid() == 0;  // else the store owner's, and a pack by its second name
  if (is_users) REQUIRE(::chown(file.c_str(), 64001, 64001) == 0);
  CHECK(bytes_of(draft) == (is_users ? Each{7} : Each{0}));
  REQUIRE(::link(file.c_str(), (below + "a/y").c_str()) == 0);
  CHECK(bytes_of(draft) == (is_users ? Each{7} : Each{0}));
  must(draft.tree->make_directory(kNewIno, "b", 0755));
  REQUIRE(::link(file.c_str(), (below + "b/x").c_str()) == 0);
  CHECK(bytes_of(draft) == (is_users ? Each{7, 0} : Each{0, 0}));
  if (is_users) REQUIRE(::chown(file.c_str(), ::geteuid(), ::getegid()) == 0);
  CHECK(bytes_of(draft) == Each{0, 0});
  REQUIRE(::unlink(other.c_str()) == 0);
  CHECK(bytes_of(draft) == Each{0, 7});  // no pack: all names of the file are here
  if (is_users) REQUIRE(::chown(file.c_str(), 64001, 64001) == 0);
  const Each before = bytes_of(draft);
  CHECK(bytes_of(must(remove_old_drafts(draft.dir.path(), std::chrono::seconds(0)))) == before);
}

TEST_CASE("a store without drafts has no old ones") {
  const TempDir dir;
  CHECK(must(old_drafts(dir.path(), std::chrono::seconds(0))).empty());
}

}  // namespace
}  // namespace weft

// The drafts that gc removes.
#include "drafts/old_drafts.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
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
  const std::string file = draft.dir.path() + "/drafts/tree/a/x";
  must(write_exact(draft.file.fd.get(), 0, as_bytes("1234567"), "x"));
  draft.file.fd.reset();
  REQUIRE(::link(file.c_str(), (draft.dir.path() + "/other").c_str()) == 0);
  if (::geteuid() == 0) REQUIRE(::chown(file.c_str(), 64001, 64001) == 0);
  const auto old = must(old_drafts(draft.dir.path(), std::chrono::seconds(0)));
  REQUIRE(old.size() == 1);
  CHECK(old[0].bytes == draft.tree->use().bytes);
  CHECK(old[0].bytes == (::geteuid() == 0 ? 7 : 0));
}

TEST_CASE("a store without drafts has no old ones") {
  const TempDir dir;
  CHECK(must(old_drafts(dir.path(), std::chrono::seconds(0))).empty());
}

}  // namespace
}  // namespace weft

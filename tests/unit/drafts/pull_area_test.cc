// The directory of a pull: one owner at a time, and its end.
#include "drafts/pull_area.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr auto kYear = std::chrono::hours(24 * 365);

const Patience kNone{[] { return true; }, {}};

struct Place {
  TempDir dir;
  SafePath pulls = must(SafePath::open_owned(dir.path())) / kPullsFolder;
  bool has(const std::string& key) const { return std::filesystem::exists(dir.path() + "/pulls/" + key); }
};

}  // namespace

TEST_CASE("pull area: one process has it, and the next one finds its files") {
  const Place place;
  {
    const PullArea area = must(PullArea::open(place.pulls, "k", kNone));
    must(make_directory(area.files() / "sub"));
    const auto second = PullArea::open(place.pulls, "k", kNone);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == Errc::cancelled);
    CHECK(PullArea::open(place.pulls, "other", kNone).ok());
  }
  PullArea again = must(PullArea::open(place.pulls, "k", kNone));
  CHECK(stat_file(again.files() / "sub").ok());
  must(again.remove());
  CHECK_FALSE(place.has("k"));
  CHECK(PullArea::open(place.pulls, "k", kNone).ok());
}

TEST_CASE("pull area: gc removes an old one that no process has") {
  const Place place;
  must(remove_old_pulls(place.pulls, std::chrono::seconds(0)));  // there is none
  const PullArea used = must(PullArea::open(place.pulls, "used", kNone));
  { const PullArea left = must(PullArea::open(place.pulls, "left", kNone)); }
  must(remove_old_pulls(place.pulls, kYear));
  CHECK(place.has("left"));
  must(remove_old_pulls(place.pulls, std::chrono::seconds(0)));
  CHECK_FALSE(place.has("left"));
  CHECK(place.has("used"));
}

TEST_CASE("pull area: processes that take turns never meet one that is half removed") {
  const Place place;
  std::atomic<int> failed{0};
  const auto take_turns = [&] {
    for (int i = 0; i < 300; ++i) {
      auto area = PullArea::open(place.pulls, "k", {});
      bool done = area.ok();
      for (int k = 0; k < 5 && done; ++k) done = make_directory(area->files() / std::to_string(k)).ok();
      done = done && area->remove().ok();
      if (!done) ++failed;
    }
  };
  std::thread first(take_turns), second(take_turns), third(take_turns);
  first.join();
  second.join();
  third.join();
  CHECK(failed == 0);
  CHECK(must(list_directory(place.pulls)).empty());
}

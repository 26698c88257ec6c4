// The places of the numbers of new/.
#include "drafts/draft_places.h"

#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "base/limits.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

struct stat facts_of(ino_t inode, dev_t device = 7) {
  struct stat st {};
  st.st_dev = device;
  st.st_ino = inode;
  return st;
}

TEST_CASE("a path leads from new/ down") {
  DraftPlaces places(facts_of(2));
  const Ino org = must(places.found(facts_of(10), kNewIno, "org")).ino;
  const Ino model = must(places.found(facts_of(11), org, "m")).ino;
  CHECK(must(places.path(kNewIno)).empty());
  CHECK(must(places.path(model)) == "org/m");
  CHECK(must(places.place(model)).name == "m");
  CHECK(must(places.parent(model)) == org);
  CHECK(must(places.parent(org)) == kNewIno);
  CHECK(must(places.parent(kNewIno)) == kRootIno);
  SUBCASE("a later place replaces the earlier one") {
    CHECK(must(places.found(facts_of(11), kNewIno, "other")).ino == model);
    CHECK(must(places.path(model)) == "other");
  }
  SUBCASE("a forgotten directory hides the entries below it") {
    places.forget(org);
    CHECK(code_of(places.path(model)) == Errc::changed);
    CHECK(code_of(places.place(org)) == Errc::changed);
    CHECK(must(places.parent(model)) == org);
  }
}

TEST_CASE("new/ has its number without a place") {
  DraftPlaces places(facts_of(2));
  CHECK(places.number_of(facts_of(2)) == kNewIno);
  CHECK(places.number_of(facts_of(2, 8)) != kNewIno);
  CHECK(must(places.found(facts_of(2), kNewIno, "loop")).ino == kNewIno);
  CHECK(code_of(places.place(kNewIno)) == Errc::changed);
}

TEST_CASE("an entry without a number has no place") {
  DraftPlaces places(facts_of(2));
  CHECK(os_error_of(places.found(facts_of(10, 8), kNewIno, "mounted")) == EXDEV);
  CHECK(os_error_of(places.found(facts_of(kDraftNumberMask + 1), kNewIno, "large")) == EOVERFLOW);
}

TEST_CASE("no path has more components than the limit") {
  DraftPlaces places(facts_of(2));
  Ino last = kNewIno;
  for (std::size_t i = 0; i < limits::kPathComponentsMax; ++i)
    last = must(places.found(facts_of(10 + i), last, "d")).ino;
  CHECK(places.path(last).ok());
  const Ino deeper = must(places.found(facts_of(9), last, "d")).ino;
  CHECK(os_error_of(places.path(deeper)) == ELOOP);
}

}  // namespace
}  // namespace weft

#include "fuse/process/known_rights.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

constexpr uid_t kOne = 1001, kOther = 1002;
constexpr Deadline kNow{std::chrono::hours(5)};

TEST_CASE("an answer about a user counts for a minute, and the last one counts") {
  RightsWords words{};
  KnownRights known(words);
  CHECK_FALSE(known.heard(kNow));
  CHECK_FALSE(known.may_publish(0, kNow));
  known.note(kOne, true, kNow);
  known.note(kOther, false, kNow);
  CHECK(known.heard(kNow + std::chrono::seconds(60)));
  CHECK(known.may_publish(kOne, kNow + std::chrono::seconds(60)));
  CHECK_FALSE(known.may_publish(kOther, kNow));
  CHECK_FALSE(known.heard(kNow + std::chrono::seconds(61)));
  CHECK_FALSE(known.may_publish(kOne, kNow + std::chrono::seconds(61)));
  known.note(kOne, false, kNow);
  CHECK_FALSE(known.may_publish(kOne, kNow));
  CHECK(KnownRights(words).heard(kNow));  // a new server
}

TEST_CASE("the oldest of too many answers is forgotten") {
  RightsWords words{};
  KnownRights known(words);
  for (uid_t user = 0; user <= kKnownUsersMax; ++user)
    known.note(user, true, kNow + std::chrono::milliseconds(500) * user);
  const Deadline later = kNow + std::chrono::seconds(33);
  CHECK_FALSE(known.may_publish(0, later));
  CHECK(known.may_publish(2, later));
  CHECK(known.may_publish(kKnownUsersMax, later));
}

}  // namespace
}  // namespace weft

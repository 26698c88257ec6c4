#include "weft/result.h"

#include <doctest/doctest.h>

#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {
namespace {

using Owner = std::unique_ptr<int>;

static_assert(!std::copy_constructible<Result<Owner>> && std::is_nothrow_move_constructible_v<Result<Owner>>);
static_assert(std::copyable<Result<int>> && std::copyable<Status>);

Status at_most_one(int number) {
  if (number > 1) return Error{Errc::io, "too many", 5};
  return {};
}

Result<Owner> owned(int number) {
  WEFT_CHECK(at_most_one(number));
  return std::make_unique<int>(number);
}

Result<int> passed_on(int number) {
  WEFT_TRY(const Owner owner, owned(number));
  return *owner;
}

void check_too_many(const Error& error) {
  CHECK(error.code == Errc::io);
  CHECK(error.message == "too many");
  CHECK(error.os_error == 5);
}

TEST_CASE("an Error passes through callers whose values have other types") {
  CHECK(passed_on(1).value() == 1);
  check_too_many(passed_on(2).error());
}

TEST_CASE("a Result is copied, moved and assigned in either state") {
  auto good = passed_on(1);
  auto bad = passed_on(2);
  const auto copy = bad;
  check_too_many(copy.error());
  std::swap(good, bad);
  CHECK(bad.value() == 1);
  check_too_many(good.error());
  good = bad;
  CHECK(good.value() == 1);
  good = copy;
  check_too_many(good.error());
  check_too_many(copy.error());

  std::vector<Result<Owner>> many;
  for (int number = 0; number < 9; ++number) many.push_back(owned(number));
  CHECK(**many[1] == 1);
  check_too_many(many[8].error());
}

TEST_CASE("what was moved from is no success, and has no Error") {
  Status failed = at_most_one(2);
  const Status other = std::move(failed);
  CHECK_FALSE(failed.ok());  // NOLINT(bugprone-use-after-move)
  CHECK_THROWS_AS(static_cast<void>(failed.error()), std::logic_error);
  check_too_many(other.error());
}

TEST_CASE("WEFT_CHECK of a variable leaves its Error there") {
  const Status failed = at_most_one(2);
  const auto asked = [&]() -> Result<int> {
    WEFT_CHECK(failed);
    return 1;
  };
  check_too_many(asked().error());
  check_too_many(failed.error());
}

TEST_CASE("neither the value of a failure nor the Error of a value can be read") {
  CHECK_THROWS_AS((void)passed_on(2).value(), std::logic_error);
  CHECK_THROWS_AS((void)passed_on(1).error(), std::logic_error);
  CHECK_THROWS_AS((void)at_most_one(1).error(), std::logic_error);
}

TEST_CASE("if_there() takes Errc::not_found alone for nothing") {
  CHECK(if_there(Result<int>(Error{Errc::not_found, "none"})).value() == std::nullopt);
  CHECK(if_there(Result<int>(1)).value() == 1);
  check_too_many(if_there(passed_on(2)).error());
}

}  // namespace
}  // namespace weft

#include "base/lru_cache.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

std::shared_ptr<const int> boxed(int value) {
  return std::make_shared<const int>(value);
}

}  // namespace

TEST_CASE("a cache forgets what was used longest ago") {
  LruCache<int> cache(100);
  cache.put(1, boxed(1), 40);
  cache.put(2, boxed(2), 40);
  REQUIRE(cache.find(1) != nullptr);
  cache.put(3, boxed(3), 40);
  CHECK(cache.find(2) == nullptr);
  REQUIRE(cache.find(1) != nullptr);
  CHECK(*cache.find(1) == 1);
  CHECK(*cache.find(3) == 3);
}

TEST_CASE("the latest entry stays, however large") {
  LruCache<int> cache(100);
  cache.put(1, boxed(1), 10);
  cache.put(2, boxed(2), 1000);
  CHECK(cache.find(1) == nullptr);
  CHECK(cache.find(2) != nullptr);
  cache.put(3, boxed(3), 10);
  CHECK(cache.find(2) == nullptr);
  CHECK(cache.find(3) != nullptr);
}

TEST_CASE("putting a key again replaces its value and its bytes") {
  LruCache<int> cache(100);
  cache.put(1, boxed(1), 90);
  cache.put(1, boxed(2), 10);
  cache.put(2, boxed(3), 90);
  REQUIRE(cache.find(1) != nullptr);
  CHECK(*cache.find(1) == 2);
}

TEST_CASE("entries unused for a time are dropped, including the latest") {
  LruCache<int> cache(100);
  cache.put(1, std::make_shared<const int>(1), 10);
  cache.put(2, std::make_shared<const int>(2), 10);
  cache.drop_unused(std::chrono::hours(1));
  CHECK(cache.find(1));
  CHECK(cache.find(2));
  cache.drop_unused(std::chrono::seconds(0));
  CHECK_FALSE(cache.find(1));
  CHECK_FALSE(cache.find(2));
}

}  // namespace weft

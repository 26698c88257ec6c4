// Patterns for names.
#include "base/glob.h"

#include <doctest/doctest.h>

#include <string>

namespace weft {
namespace {

TEST_CASE("globs") {
  CHECK(glob_matches("", ""));
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("a*b*c", "axxbyybzc"));
  CHECK_FALSE(glob_matches("a*b*c", "axxbyybz"));
  CHECK(glob_matches("layer.[0-9].w", "layer.7.w"));
  CHECK_FALSE(glob_matches("layer.[!0-9].w", "layer.7.w"));
  CHECK(glob_matches("\\*", "*"));
  CHECK_FALSE(glob_matches("\\*", "a"));
  CHECK_FALSE(glob_matches("[a", "a"));
  CHECK(glob_matches("[]]", "]"));
  CHECK_FALSE(glob_matches("?", ""));
  std::string many(2000, 'a');
  CHECK_FALSE(glob_matches("*a*a*a*a*a*a*a*a*b", many));
}

}  // namespace
}  // namespace weft

#include <doctest/doctest.h>

#include <random>

#include "base/text.h"
#include "testing.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

using namespace std::literals;

TEST_CASE("ordinary names need no escapes") {
  for (const char* name : {"weight", "encoder.layer.0.attention.self.query.weight", "blk.0.attn_q", "a b", "h[0]",
                           "a@b", "-", "~x", "...", "größe", "重み", "\xc2\xa0"})
    CHECK(escape_component(name) == name);
}

TEST_CASE("names that cannot be file names are escaped") {
  CHECK(escape_component("") == "%-");
  CHECK(escape_component(".") == "%2E");
  CHECK(escape_component("..") == "%2E%2E");
  CHECK(escape_component("a/b") == "a%2Fb");
  CHECK(escape_component("100%") == "100%25");
  CHECK(escape_component("%-") == "%25-");
  CHECK(escape_component("@file") == "%40file");
  CHECK(escape_component("a\0b"s) == "a%00b");
  CHECK(escape_component("\x1b[1m\x7f\n") == "%1B[1m%7F%0A");
  CHECK(escape_component("a\xc2\x9b") == "a%C2%9B");
  CHECK(escape_component("\xe2\x80\xae.b") == "%E2%80%AE.b");
  CHECK(escape_component("\xff\xc3") == "%FF%C3");
}

// Returns the name that an escape stands for.
std::string unescaped(std::string_view escape) {
  if (escape == "%-") return "";
  std::string raw;
  for (std::size_t i = 0; i < escape.size(); ++i) {
    if (escape[i] != '%') {
      raw += escape[i];
      continue;
    }
    raw += static_cast<char>(hex_value(escape[i + 1]) * 16 + hex_value(escape[i + 2]));
    i += 2;
  }
  return raw;
}

TEST_CASE("escapes are reversible, and safe as file names") {
  std::uint64_t seed = testing::test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  constexpr std::string_view kLikely = "%/.@-\0\n\x7f 2EFa"sv;
  for (int round = 0; round < 20'000; ++round) {
    std::string raw(random() % 6, ' ');
    for (char& c : raw) c = random() % 4 == 0 ? static_cast<char>(random()) : kLikely[random() % kLikely.size()];
    std::string escaped = escape_component(raw);
    CAPTURE(escaped);
    REQUIRE(unescaped(escaped) == raw);
    REQUIRE_FALSE(escaped.empty());
    REQUIRE(escaped != ".");
    REQUIRE(escaped != "..");
    REQUIRE_FALSE(escaped.starts_with('@'));
    REQUIRE(escaped.find_first_of("/\0\n\x7f"s) == std::string::npos);
  }
}

}  // namespace
}  // namespace weft
